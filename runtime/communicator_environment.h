// The communicator of this process, by what its launcher put into the environment:
//   under hvdrun               TCP among the job's ranks (HVDRUN_RENDEZVOUS, RANK, WORLD_SIZE,
//                              HVDRUN_ADDRESS, HOROVOD_HOSTNAME)
//   started alone              the single process's own
//   ranks of another launcher  an error: how they would find each other is not known
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "proto/worker_env.h"
#include "runtime/communicator.h"

namespace hvd {

// Where this process stands, as its environment tells. Pure.
struct WorkerPlace {
  bool is_alone = true;
  int rank = 0;
  int size = 1;
  std::string address;     // numeric, of this node
  std::string host;        // as the user calls it
  std::string rendezvous;  // path of the agent's socket
};
[[nodiscard]] Result<WorkerPlace> worker_place(const EnvList& environment);

// timeout: until all ranks are connected. Every rank calls it once in a job's life.
[[nodiscard]] Result<std::unique_ptr<Communicator>> communicator_from_environment(
    std::chrono::milliseconds timeout);

}  // namespace hvd
