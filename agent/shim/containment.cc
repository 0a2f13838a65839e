#include "agent/shim/containment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "agent/shim/process_tree.h"
#include "base/sys.h"
#include "base/unique_fd.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;

constexpr int kMaxStopPasses = 20;
constexpr Nanos kMaxStopping = milliseconds(500);
constexpr Nanos kFirstPause = milliseconds(1);
constexpr Nanos kLongestPause = milliseconds(100);
constexpr int kEmptyLooks = 2;

struct Descent {
  bool is_descendant = false;
  bool is_excluded = false;
};

Descent trace(const ProcessTree& tree, const Container& container,
              const std::set<pid_t>& supervisors, pid_t pid) {
  Descent descent;
  descent.is_excluded = container.excluded.contains(pid);
  descent.is_descendant = supervisors.contains(pid);
  tree.climb(pid, [&](pid_t ancestor) {
    descent.is_excluded |= container.excluded.contains(ancestor);
    descent.is_descendant |= supervisors.contains(ancestor);
    descent.is_descendant |= container.root > 0 && ancestor == container.root;
    return !descent.is_descendant && !descent.is_excluded;
  });
  return descent;
}

// A child that has cleared its environment is found through a parent that has not.
void add_descendants(std::vector<ProcStat>& members, const ProcessTree& tree,
                     const std::vector<const ProcStat*>& others, const std::set<pid_t>& marked) {
  if (marked.empty()) return;
  for (const ProcStat* process : others) {
    const auto is_marked = [&](pid_t ancestor) { return marked.contains(ancestor); };
    if (tree.find_ancestor(process->pid, is_marked) != 0) members.push_back(*process);
  }
}

std::vector<ProcStat> supervisors_in(const std::vector<ProcStat>& table, std::string_view job_id,
                                     std::uint32_t node) {
  std::vector<ProcStat> found;
  for (const ProcStat& process : table) {
    const bool is_ours = process.comm.starts_with("hvd-") && is_alive(process);
    if (is_ours && is_supervisor(words_of(process), job_id, node)) found.push_back(process);
  }
  return found;
}

// The shim (or whoever asks) and everything above it.
std::set<pid_t> find_untouchable(const ProcessTree& tree, pid_t root) {
  std::set<pid_t> untouchable{1, getpid()};
  for (const pid_t pid : {root, getpid()}) {
    untouchable.insert(pid);
    tree.climb(pid, [&](pid_t ancestor) { return untouchable.insert(ancestor).second; });
  }
  return untouchable;
}

}  // namespace

std::vector<ProcStat> select_members(const std::vector<ProcStat>& table, const Container& container,
                                     const std::function<bool(const ProcStat&)>& is_marked,
                                     const std::set<pid_t>& supervisors) {
  const ProcessTree tree(table);
  const std::set<pid_t> untouchable = find_untouchable(tree, container.root);
  std::vector<ProcStat> members;
  std::vector<const ProcStat*> others;
  std::set<pid_t> marked;
  for (const ProcStat& process : table) {
    if (process.is_kernel_thread || !is_alive(process)) continue;
    if (untouchable.contains(process.pid)) continue;
    const Descent descent = trace(tree, container, supervisors, process.pid);
    if (descent.is_excluded) continue;
    const bool is_member = descent.is_descendant || container.sessions.contains(process.session) ||
                           container.listed.contains(process.pid);
    if (!is_member && is_marked(process)) marked.insert(process.pid);
    if (is_member || marked.contains(process.pid)) {
      members.push_back(process);
    } else {
      others.push_back(&process);
    }
  }
  add_descendants(members, tree, others, marked);
  return members;
}

bool is_supervisor(std::string_view cmdline, std::string_view job_id, std::uint32_t node) {
  using namespace std::string_view_literals;
  const std::string_view program = cmdline.substr(0, cmdline.find('\0'));
  const std::string_view name = program.substr(program.rfind('/') + 1);
  const std::string_view words = cmdline.substr(program.size());
  const std::string mark = fmt::format("{0}--job{0}{1}{0}--node{0}{2}{0}", '\0', job_id, node);
  const bool is_role = words.starts_with("\0--stdio\0"sv) || words.starts_with("\0shim\0"sv) ||
                       words.starts_with("\0job\0"sv);
  return name.starts_with("hvd-agent") && is_role && !job_id.empty() &&
         words.find(mark) != std::string_view::npos;
}

std::vector<ProcStat> find_members(const Container& container) {
  const std::vector<ProcStat> table = read_process_table();
  std::set<pid_t> supervisors;
  if (container.claims_supervisors) {
    for (const ProcStat& process : supervisors_in(table, container.job_id, container.node)) {
      supervisors.insert(process.pid);
    }
  }
  const auto is_marked = [&](const ProcStat& process) {
    return carries_mark(process, container.job_id, container.node);
  };
  std::vector<ProcStat> members;
  for (ProcStat& member : select_members(table, container, is_marked, supervisors)) {
    if (auto living = look_at_threads(std::move(member))) members.push_back(std::move(*living));
  }
  return members;
}

std::vector<ProcStat> find_supervisors(std::string_view job_id, std::uint32_t node) {
  std::vector<ProcStat> found = supervisors_in(read_process_table(), job_id, node);
  std::erase_if(found, [](const ProcStat& process) { return process.pid == getpid(); });
  return found;
}

std::vector<ProcStat> living_among(const std::set<pid_t>& pids) {
  std::vector<ProcStat> living;
  for (const pid_t pid : pids) {
    auto process = read_stat(pid);
    if (process && is_alive(*process)) living.push_back(std::move(*process));
  }
  return living;
}

bool signal_process(const ProcStat& process, int signal) {
  const UniqueFd pidfd(sys::pidfd_open(process.pid));
  if (!pidfd.is_valid()) return false;
  const auto now = read_stat(process.pid);
  if (!now || now->start_time != process.start_time) return false;
  return sys::pidfd_send_signal(pidfd.get(), signal) == 0;
}

hvdrun::v1::Survivor describe_survivor(const ProcStat& process) {
  hvdrun::v1::Survivor survivor;
  survivor.set_pid(process.pid);
  survivor.set_uid(user_of(process.pid));
  survivor.set_state(std::string(1, process.state));
  survivor.set_wchan(wait_channel_of(process));
  survivor.set_command(command_of(process));
  for (const std::uint16_t port : listening_ports_of(process.pid)) {
    survivor.add_listening_ports(port);
  }
  return survivor;
}

Sweep::Step Sweep::step(const Container& container, bool has_children, Nanos now) {
  const std::vector<ProcStat> members = find_members(container);
  if (members.empty()) {
    // With children left there are members that this look missed, or dead ones about to be reaped.
    num_empty_looks_ = has_children ? 0 : num_empty_looks_ + 1;
    if (num_empty_looks_ >= kEmptyLooks) return {true, now, 0};
    return {false, has_children ? now + back_off() : now, 0};
  }
  num_empty_looks_ = 0;
  if (stop_new(members, now)) return {false, now, members.size()};
  kill(members);
  return {false, now + back_off(), members.size()};
}

// Whether another look for new ones is due before the kill.
bool Sweep::stop_new(const std::vector<ProcStat>& members, Nanos now) {
  bool found_new = false;
  for (const ProcStat& member : members) {
    if (!stopped_.insert({member.pid, member.start_time}).second) continue;
    found_new |= signal_process(member, SIGSTOP);
  }
  if (num_stop_passes_++ == 0) stopping_since_ = now;
  if (found_new && num_stop_passes_ < kMaxStopPasses && now - stopping_since_ < kMaxStopping) {
    return true;
  }
  num_stop_passes_ = 0;
  return false;
}

void Sweep::kill(const std::vector<ProcStat>& members) {
  for (const ProcStat& member : members) {
    if (signal_process(member, SIGKILL)) killed_.insert({member.pid, member.start_time});
  }
}

Nanos Sweep::back_off() {
  pause_ = std::min(std::max(pause_ * 2, kFirstPause), kLongestPause);
  return pause_;
}

void Sweep::note_killed(const std::vector<ProcStat>& members) {
  for (const ProcStat& member : members) killed_.insert({member.pid, member.start_time});
}

std::set<pid_t> Sweep::killed_pids() const {
  std::set<pid_t> pids;
  for (const auto& [pid, start_time] : killed_) pids.insert(pid);
  return pids;
}

bool Sweep::has_killed(pid_t pid) const {
  const auto found = killed_.lower_bound({pid, 0});
  return found != killed_.end() && found->first == pid;
}

}  // namespace hvd
