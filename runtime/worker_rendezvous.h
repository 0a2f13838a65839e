// How the ranks of one job meet before they are connected, however they were started: the agent of
// hvdrun, a store that rank 0 serves (peer_store_edge.h), a folder, or, alone, nothing. Each rank
// registers first: either all are let in or every one gets the same reason.
//
// Lifecycle: opened by every rank, kept until the rank's end (rank 0 may be who serves). Threads:
// any; calls block until their answer or their time limit.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/status.h"
#include "hvdrun/v1/types.pb.h"
#include "proto/v1.h"
#include "runtime/launch_place.h"
#include "runtime/tcp_rendezvous.h"

namespace hvd {

class WorkerRendezvous : public TcpRendezvous {
 public:
  // Returns when all ranks have told what they are and fit together. An error is a line; its code
  // is WorkerExit::kMismatch where the ranks do not fit. A table and warnings are printed once for
  // the job.
  [[nodiscard]] virtual Result<void> register_worker(const hvdrun::v1::Registration& registration,
                                                     Timeout timeout) = 0;

  // Numeric: by which the others reach this machine.
  [[nodiscard]] virtual Result<std::string> own_address() const = 0;

  // All ranks have been here for the last time; what was left behind goes.
  virtual void clean_up() {}
};

[[nodiscard]] Result<std::unique_ptr<WorkerRendezvous>> open_rendezvous(
    const LaunchPlace& launch, std::chrono::milliseconds timeout);

}  // namespace hvd
