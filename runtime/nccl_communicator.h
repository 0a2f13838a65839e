// The communicator over NCCL, for data in a GPU's memory: non-blocking throughout, with a time
// limit on init, on each enqueue, on each collective and on the end. NCCL itself has none, and of a
// peer that dies on the same node it says nothing: on_failure comes from here for what NCCL or a
// deadline tells, and from outside, by abort(), for the rest.
//
// A call returns when its operation is on the stream (communicator.h, DeviceKind::kCuda); buffers
// stay valid until it is complete. A thread of its own watches what is pending: an operation that
// is not complete at its time limit, or an error that NCCL reports, fails the communicator for good
// and aborts it, so that every wait for the stream ends.
//
// Differences to the arithmetic of communicator.h: sums of 16-bit types are rounded as NCCL does it
// on the way; kMin and kMax take no prescale.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "hvdrun/communicator.h"

namespace hvd {

struct NcclSettings {
  int rank = 0;
  int size = 1;
  int device = 0;         // ordinal of the GPU
  std::string unique_id;  // of nccl_unique_id(): one id makes one communicator
  std::string host;       // of this rank, for sentences
  std::chrono::milliseconds init_timeout = std::chrono::seconds(120);
};

// 128 bytes; a secret. By rank 0 only, which has to live until all are connected: it is the root
// that the others dial.
[[nodiscard]] Result<std::string> nccl_unique_id();

// Returns when all ranks are connected and a first all-reduce has come out right. on_failure: once
// at most, on a thread of the communicator, which must not be destroyed there.
[[nodiscard]] Result<std::unique_ptr<Communicator>> nccl_connect(
    const NcclSettings& settings, std::function<void(const CommunicatorFailure&)> on_failure);

}  // namespace hvd
