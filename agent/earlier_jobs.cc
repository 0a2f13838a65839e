#include "agent/earlier_jobs.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "agent/arguments.h"
#include "agent/gpu_memory.h"
#include "agent/shim/containment.h"
#include "agent/shim/process_tree.h"
#include "base/parse_number.h"

namespace hvd {
namespace {

constexpr std::size_t kMaxShown = 4;  // processes of a job
constexpr std::size_t kMaxCommand = 60;
constexpr std::int64_t kNanosPerSecond = 1'000'000'000;

// "NAME=" stands in `name`.
std::string_view value_in(std::string_view environ, std::string_view name) {
  while (!environ.empty()) {
    const std::string_view entry = environ.substr(0, environ.find('\0'));
    if (entry.starts_with(name)) return entry.substr(name.size());
    environ.remove_prefix(std::min(entry.size() + 1, environ.size()));
  }
  return {};
}

// With a job of its own, whatever mark its caller had.
bool is_of_hvdrun(std::string_view comm) {
  return comm == "hvdrun" || comm == "hvd-agent" || comm == "hvd-shim";
}

bool is_still_there(const ProcStat& process) {
  const auto now = read_stat(process.pid);
  return now && is_alive(*now) && now->start_time == process.start_time;
}

Nanos age_of(const ProcStat& process, Nanos now) {
  const auto ticks = static_cast<std::int64_t>(process.start_time);
  return std::max(now - Nanos(ticks * (kNanosPerSecond / sysconf(_SC_CLK_TCK))), Nanos(0));
}

std::string process_text(const ProcStat& process, Nanos now) {
  const auto ports = listening_ports_of(process.pid);
  return fmt::format(
      "{} (pid {}, for {}{})", command_of(process).substr(0, kMaxCommand), process.pid,
      format_duration(age_of(process, now)),
      ports.empty() ? "" : fmt::format(", listens on TCP port {}", fmt::join(ports, ", ")));
}

}  // namespace

std::optional<JobMark> mark_in(std::string_view environ) {
  JobMark mark;
  mark.job_id = value_in(environ, "HVDRUN_JOB_ID=");
  const auto node = parse_number<std::uint32_t>(value_in(environ, "HVDRUN_NODE="));
  if (!is_job_id(mark.job_id) || !node) return std::nullopt;
  mark.node = *node;
  return mark;
}

MarkedProcesses group_by_mark(
    const std::vector<ProcStat>& table, pid_t self,
    const std::function<std::optional<JobMark>(const ProcStat&)>& mark_of) {
  const ProcessTree tree(table);
  std::set<pid_t> own{self};
  tree.climb(self, [&own](pid_t ancestor) { return own.insert(ancestor).second; });
  const auto is_self = [self](pid_t ancestor) { return ancestor == self; };
  MarkedProcesses groups;
  for (const ProcStat& process : table) {
    if (process.is_kernel_thread || !is_alive(process) || own.contains(process.pid)) continue;
    if (is_of_hvdrun(process.comm)) continue;
    const auto mark = mark_of(process);
    if (mark && tree.find_ancestor(process.pid, is_self) == 0) groups[*mark].push_back(process);
  }
  return groups;
}

MarkedProcesses find_earlier_jobs() {
  MarkedProcesses groups =
      group_by_mark(read_process_table(), getpid(),
                    [](const ProcStat& process) { return mark_in(read_environ(process)); });
  for (auto group = groups.begin(); group != groups.end();) {
    auto& [mark, processes] = *group;
    const bool is_held = !find_supervisors(mark.job_id, mark.node).empty();
    // A shim leaves after its processes: of a job that has just ended well nothing is there now.
    std::erase_if(processes, [](const ProcStat& process) { return !is_still_there(process); });
    group = is_held || processes.empty() ? groups.erase(group) : std::next(group);
  }
  return groups;
}

std::string describe_earlier_job(const EarlierJob& job, Nanos now, std::string_view program) {
  const std::vector<ProcStat>& processes = job.processes;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(processes.size(), kMaxShown); ++i) {
    shown.push_back(process_text(processes[i], now));
  }
  if (processes.size() > kMaxShown) {
    shown.push_back(fmt::format("{} more", processes.size() - kMaxShown));
  }
  std::string text = fmt::format(
      "{} of an earlier job, whose agent and shim have gone{}, still here: {}{}; left alone; this "
      "ends them: {} reap --job {} --node {}",
      processes.size() == 1 ? "1 process" : fmt::format("{} processes", processes.size()),
      job.since_sign ? fmt::format(" (last sign {} ago)", format_duration(*job.since_sign)) : "",
      fmt::join(shown, ", "),
      job.gpu_mib > 0 ? fmt::format("; GPU memory held: {}", gib_text(job.gpu_mib)) : "", program,
      job.mark.job_id, job.mark.node);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

}  // namespace hvd
