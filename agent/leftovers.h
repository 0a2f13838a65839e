// Kills what a dead shim has left behind: every process that descends from the agent (a sub-reaper,
// so orphans come to it) or bears the job's mark. The same proof as the shim's own.
//
// Lifecycle: one sweep, once. Thread: the loop's; never blocks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/shim/containment.h"
#include "base/loop.h"

namespace hvd {

class Leftovers {
 public:
  using Done = std::function<void(const std::vector<ProcStat>& survivors)>;

  Leftovers(Loop& loop, std::string job_id, std::uint32_t node);

  // Calls `done` once nothing is left, or at the limit with what is.
  void sweep(Nanos limit, Done done);

 private:
  void step();

  const Container container_;
  boost::asio::steady_timer timer_;
  Sweep sweep_;
  Nanos deadline_{0};
  Done done_;
};

}  // namespace hvd
