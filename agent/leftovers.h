// Kills what lost supervisors of a job have left behind, with the same proof as the shim's own:
// what is in the job's cgroup, descends from whom the container names, or bears the job's mark.
//
// Lifecycle: one sweep, once. Thread: the loop's; never blocks.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "agent/own_children.h"
#include "agent/shim/containment.h"
#include "agent/shim/job_cgroup.h"
#include "base/loop.h"

namespace hvd {

class Leftovers {
 public:
  using Done = std::function<void(const std::vector<ProcStat>& survivors)>;

  // The cgroups are the job's, and are removed once empty.
  Leftovers(Loop& loop, Container container, std::vector<JobCgroup> cgroups);

  // Calls `done` once nothing is left, or at the limit with what is.
  void sweep(Nanos limit, Done done);

  [[nodiscard]] std::uint32_t num_killed() const { return sweep_.num_killed(); }

 private:
  void step();
  [[nodiscard]] bool kill_cgroups();
  void end(const std::vector<ProcStat>& survivors);

  const OwnChildren& children_;
  const std::set<pid_t> excluded_;  // by the container, from the beginning
  Container container_;
  const std::vector<JobCgroup> cgroups_;
  boost::asio::steady_timer timer_;
  Sweep sweep_;
  Nanos deadline_{0};
  Done done_;
};

// What the agent has to clean up when its shim has died: everything below the agent itself, a
// sub-reaper, to which orphans come. What it has started itself and still wants is left alone.
[[nodiscard]] Container container_of_agent(std::string job_id, std::uint32_t node);

}  // namespace hvd
