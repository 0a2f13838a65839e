// Which processes belong to this node's part of a job, and how those are killed that no cgroup
// holds. Evidence, any one of: descent from the shim; membership in the session of a worker's
// leader that has not been reaped; the job's mark in the environment (job id and node index
// together: several agents may share one /proc, and each claims only its own), or descent from who
// bears it; the job's cgroup.
// Never: the shim itself, its ancestors, kernel threads, what is excluded. A parent that is younger
// than its child is none: its number has been used again since.
//
// A Sweep is driven by its owner's loop and never blocks. Descent is proved by the kernel: the shim
// is a sub-reaper, so it has a child as long as any descendant lives; the mark finds what somebody
// else started for the job.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/shim/proc.h"
#include "base/clock.h"
#include "hvdrun/v1/types.pb.h"

namespace hvd {

struct Container {
  std::string job_id;
  std::uint32_t node = 0;
  pid_t root = 0;            // whose descendants count; 0: the mark alone
  std::set<pid_t> sessions;  // only while their leaders are unreaped
  std::set<pid_t> excluded;  // these and what descends from them
  std::set<pid_t> listed;    // that the job's cgroup has just named
  // The job's agent and shim, known by their command line, and what descends from them belong to
  // it, too: for somebody who comes after they were lost.
  bool claims_supervisors = false;
};

// Layers in force, as ShimReady and Finished tell them; ShimReady adds the cgroup's folder, or why
// there is none.
inline constexpr const char* kByDescent = "descendants";
inline constexpr const char* kByCgroup = "cgroup";

// Between two looks at processes or cgroups whose end nobody signals.
inline constexpr Nanos kLookPause = std::chrono::milliseconds(100);

// Pure: the members among a table of processes, zombies left out. `is_marked` is asked only where
// nothing else decides. `supervisors`: members themselves, and what descends from them.
[[nodiscard]] std::vector<ProcStat> select_members(
    const std::vector<ProcStat>& table, const Container& container,
    const std::function<bool(const ProcStat&)>& is_marked, const std::set<pid_t>& supervisors = {});

// Whether a /proc/PID/cmdline is that of the job's agent or shim: "hvd-agent", "--stdio" or "shim",
// and "--job JOB --node NODE". Pure.
[[nodiscard]] bool is_supervisor(std::string_view cmdline, std::string_view job_id,
                                 std::uint32_t node);

// The members now. Of a process whose first thread has ended another thread's state is told.
[[nodiscard]] std::vector<ProcStat> find_members(const Container& container);

// The job's agent and shim as far as they live, but not who asks.
[[nodiscard]] std::vector<ProcStat> find_supervisors(std::string_view job_id, std::uint32_t node);

// Those of these that live; the numbers are the cgroup's, which kills them itself.
[[nodiscard]] std::vector<ProcStat> living_among(const std::set<pid_t>& pids);

// Signals exactly this process: its descriptor is taken first and its start time checked after, so
// a reused pid is never hit. False if it has gone or may not be signalled.
bool signal_process(const ProcStat& process, int signal);

[[nodiscard]] hvdrun::v1::Survivor describe_survivor(const ProcStat& process);

// Stop all, until nothing new appears; kill all; until two looks in a row find nothing and, where
// descent counts, no child is left. Stopping first keeps one process from restarting another.
class Sweep {
 public:
  struct Step {
    bool is_empty = false;        // verified
    Nanos next{0};                // when to call again, if not empty
    std::size_t num_members = 0;  // that this look found
  };

  // `has_children`: the owner has children left after reaping; false where descent does not count.
  Step step(const Container& container, bool has_children, Nanos now);

  // Somebody else kills these, as the cgroup does: they count, too.
  void note_killed(const std::vector<ProcStat>& members);

  [[nodiscard]] bool has_killed(pid_t pid) const;
  [[nodiscard]] std::set<pid_t> killed_pids() const;
  [[nodiscard]] std::uint32_t num_killed() const {
    return static_cast<std::uint32_t>(killed_.size());
  }

 private:
  using Identity = std::pair<pid_t, std::uint64_t>;  // pid, start time
  bool stop_new(const std::vector<ProcStat>& members, Nanos now);
  void kill(const std::vector<ProcStat>& members);
  Nanos back_off();

  std::set<Identity> stopped_;
  std::set<Identity> killed_;
  int num_empty_looks_ = 0;
  int num_stop_passes_ = 0;
  Nanos stopping_since_{0};
  Nanos pause_{0};
};

}  // namespace hvd
