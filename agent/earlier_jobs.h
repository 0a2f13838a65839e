// Processes of jobs whose agent and shim have both gone, so that nobody ends them any more: they
// hold the memory, GPUs and ports that the next job wants. Whoever starts one is told of them, with
// the command that ends them; they are never touched.
//
// One look at /proc. Thread: any; nothing blocks.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/shim/proc.h"
#include "base/clock.h"

namespace hvd {

struct JobMark {
  std::string job_id;
  std::uint32_t node = 0;
  friend auto operator<=>(const JobMark&, const JobMark&) = default;
};
using MarkedProcesses = std::map<JobMark, std::vector<ProcStat>>;

// Of a /proc/PID/environ; nullopt: it has not both variables as hvdrun makes them. Pure.
[[nodiscard]] std::optional<JobMark> mark_in(std::string_view environ);

// Living processes by the job that they are marked for. Left out: `self` with its ancestors (a job
// may be started from a shell that an earlier one has left) and its descendants. Pure.
[[nodiscard]] MarkedProcesses group_by_mark(
    const std::vector<ProcStat>& table, pid_t self,
    const std::function<std::optional<JobMark>(const ProcStat&)>& mark_of);

// Those of them that have lost agent and shim, now.
[[nodiscard]] MarkedProcesses find_earlier_jobs();

struct EarlierJob {
  JobMark mark;
  std::vector<ProcStat> processes;
  std::optional<Nanos> since_sign;  // of its shim
  std::uint64_t gpu_mib = 0;        // what nvidia-smi says that they hold
};

// What a user is told of one of them: printable ASCII, one line. `now` is boot time, `program` this
// hvd-agent.
[[nodiscard]] std::string describe_earlier_job(const EarlierJob& job, Nanos now,
                                               std::string_view program);

}  // namespace hvd
