// A communicator between the CPUs of a job's ranks and nothing else of the runtime: no
// registration, no heartbeats (hvdrun/runtime.h has them). Under any launcher (launch_place.h).
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "hvdrun/communicator.h"
#include "proto/worker_env.h"

namespace hvd {

// Where this process stands, as its environment tells. Pure.
struct WorkerPlace {
  bool is_alone = true;
  int rank = 0;
  int size = 1;
  std::string address;     // numeric, of this node
  std::string host;        // as the user calls it
  std::string rendezvous;  // where the ranks meet: under hvdrun, the path of the agent's socket
};
[[nodiscard]] Result<WorkerPlace> worker_place(const EnvList& environment);

// timeout: until all ranks are connected. Every rank calls it once in a job's life.
[[nodiscard]] Result<std::unique_ptr<Communicator>> communicator_from_environment(
    std::chrono::milliseconds timeout);

}  // namespace hvd
