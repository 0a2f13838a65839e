#include "agent/shim/containment.h"

#include <algorithm>
#include <csignal>
#include <unordered_map>

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

class Family {
 public:
  explicit Family(const std::vector<ProcStat>& table) {
    for (const ProcStat& process : table) parent_[process.pid] = process.ppid;
  }

  // The chain of parents of `pid`, nearest first. A snapshot of moving processes may hold a loop.
  template <typename Visit>
  void climb(pid_t pid, Visit visit) const {
    for (std::size_t step = 0; step <= parent_.size(); ++step) {
      const auto found = parent_.find(pid);
      if (found == parent_.end() || found->second <= 0) return;
      pid = found->second;
      if (!visit(pid)) return;
    }
  }

 private:
  std::unordered_map<pid_t, pid_t> parent_;
};

struct Descent {
  bool is_descendant = false;
  bool is_excluded = false;
};

Descent trace(const Family& family, const Container& container, pid_t pid) {
  Descent descent;
  descent.is_excluded = container.excluded.contains(pid);
  family.climb(pid, [&](pid_t ancestor) {
    descent.is_excluded |= container.excluded.contains(ancestor);
    descent.is_descendant = container.root > 0 && ancestor == container.root;
    return !descent.is_descendant && !descent.is_excluded;
  });
  return descent;
}

// The shim (or whoever asks) and everything above it.
std::set<pid_t> find_untouchable(const Family& family, pid_t root) {
  std::set<pid_t> untouchable{1, getpid()};
  for (const pid_t pid : {root, getpid()}) {
    untouchable.insert(pid);
    family.climb(pid, [&](pid_t ancestor) { return untouchable.insert(ancestor).second; });
  }
  return untouchable;
}

}  // namespace

std::vector<ProcStat> select_members(const std::vector<ProcStat>& table, const Container& container,
                                     const std::function<bool(const ProcStat&)>& is_marked) {
  const Family family(table);
  const std::set<pid_t> untouchable = find_untouchable(family, container.root);
  std::vector<ProcStat> members;
  for (const ProcStat& process : table) {
    if (process.is_kernel_thread || !is_alive(process)) continue;
    if (untouchable.contains(process.pid)) continue;
    const Descent descent = trace(family, container, process.pid);
    if (descent.is_excluded) continue;
    if (descent.is_descendant || container.sessions.contains(process.session) ||
        is_marked(process)) {
      members.push_back(process);
    }
  }
  return members;
}

std::vector<ProcStat> find_members(const Container& container) {
  return select_members(read_process_table(), container, [&](const ProcStat& process) {
    return carries_mark(process, container.job_id, container.node);
  });
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
  survivor.set_wchan(wait_channel_of(process.pid));
  survivor.set_command(command_of(process));
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

bool Sweep::has_killed(pid_t pid) const {
  const auto found = killed_.lower_bound({pid, 0});
  return found != killed_.end() && found->first == pid;
}

}  // namespace hvd
