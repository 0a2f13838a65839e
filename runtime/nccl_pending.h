// The operations of a communicator that are on a stream and not known to be complete, oldest
// first, each with an event behind it and its time limit. Not locked: the owner's lock is.
#pragma once

#include <cuda_runtime_api.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace hvd {

struct PendingOperation {
  std::uint64_t number = 0;
  std::string what;  // "all_reduce of 26214400 bytes"
  SteadyTime deadline;
  std::chrono::milliseconds timeout{0};
  cudaEvent_t event = nullptr;
};

class NcclPending {
 public:
  NcclPending() = default;
  NcclPending(const NcclPending&) = delete;
  NcclPending& operator=(const NcclPending&) = delete;
  ~NcclPending();

  // Puts an event on the stream behind the operation. The operation's number, from 1.
  [[nodiscard]] Result<std::uint64_t> add(std::string what, std::chrono::milliseconds timeout,
                                          cudaStream_t stream);
  // Forgets what is complete; an error of CUDA means that the GPU's context is gone.
  [[nodiscard]] Result<void> sweep();
  // The oldest operation whose time is up.
  [[nodiscard]] const PendingOperation* overdue(SteadyTime now) const;

  [[nodiscard]] bool is_empty() const { return operations_.empty(); }
  [[nodiscard]] std::uint64_t last_added() const { return last_added_; }
  [[nodiscard]] std::uint64_t last_completed() const { return last_completed_; }
  [[nodiscard]] const std::string& oldest() const { return operations_.front().what; }

 private:
  std::deque<PendingOperation> operations_;
  std::vector<cudaEvent_t> free_events_;
  std::uint64_t last_added_ = 0;
  std::uint64_t last_completed_ = 0;
};

}  // namespace hvd
