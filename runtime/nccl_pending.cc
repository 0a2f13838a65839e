#include "runtime/nccl_pending.h"

#include "runtime/nccl_check.h"

namespace hvd {

NcclPending::~NcclPending() {
  for (const PendingOperation& operation : operations_) cudaEventDestroy(operation.event);
  for (cudaEvent_t event : free_events_) cudaEventDestroy(event);
}

Result<std::uint64_t> NcclPending::add(std::string what, std::chrono::milliseconds timeout,
                                       cudaStream_t stream) {
  PendingOperation operation;
  if (free_events_.empty()) {
    auto made = check_cuda(cudaEventCreateWithFlags(&operation.event, cudaEventDisableTiming),
                           "event behind a collective");
    if (!made) return tl::unexpected(made.error());
  } else {
    operation.event = free_events_.back();
    free_events_.pop_back();
  }
  auto recorded = check_cuda(cudaEventRecord(operation.event, stream), "event behind a collective");
  if (!recorded) return tl::unexpected(recorded.error());
  operation.number = ++last_added_;
  operation.what = std::move(what);
  operation.timeout = timeout;
  operation.deadline = std::chrono::steady_clock::now() + timeout;
  operations_.push_back(std::move(operation));
  return last_added_;
}

// On one stream they complete in order; one on another stream that is complete already waits here
// for those before it.
Result<void> NcclPending::sweep() {
  while (!operations_.empty()) {
    const PendingOperation& oldest = operations_.front();
    const cudaError_t state = cudaEventQuery(oldest.event);
    if (state == cudaErrorNotReady) return {};
    if (auto done = check_cuda(state, oldest.what); !done) return done;
    last_completed_ = oldest.number;
    free_events_.push_back(oldest.event);
    operations_.pop_front();
  }
  return {};
}

const PendingOperation* NcclPending::overdue(SteadyTime now) const {
  for (const PendingOperation& operation : operations_) {
    if (operation.deadline <= now) return &operation;
  }
  return nullptr;
}

}  // namespace hvd
