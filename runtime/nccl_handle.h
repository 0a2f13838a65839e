// A non-blocking ncclComm_t: one call at a time, each followed to its end with a deadline; abort
// from any thread. Knows nothing of operations.
#pragma once

#include <nccl.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace hvd {

struct NcclEnd {
  enum class Kind { kOk, kError, kDeadline, kAborted };
  Kind kind = Kind::kOk;
  std::string text;        // NCCL's own words
  bool is_remote = false;  // of kError: a peer or the network, not this rank
};

class NcclHandle {
 public:
  NcclHandle() = default;
  NcclHandle(const NcclHandle&) = delete;
  NcclHandle& operator=(const NcclHandle&) = delete;
  ~NcclHandle();  // aborts what is still there

  [[nodiscard]] NcclEnd init(int rank, int size, const ncclUniqueId& id, SteadyTime deadline);

  // call: one NCCL call on the communicator, made under the lock; then polled until NCCL has taken
  // it over.
  [[nodiscard]] NcclEnd run(const std::function<ncclResult_t(ncclComm_t)>& call,
                            SteadyTime deadline);

  // What NCCL has found out by itself; kOk while all is well.
  [[nodiscard]] NcclEnd check();

  // Flushes, then frees.
  [[nodiscard]] NcclEnd finalize(SteadyTime deadline);

  // Ends every kernel and every call of this communicator. Blocks while NCCL frees what it holds.
  void abort();

 private:
  [[nodiscard]] NcclEnd follow(ncclResult_t first, SteadyTime deadline);
  [[nodiscard]] NcclEnd end_of(ncclResult_t result) const;

  std::timed_mutex mutex_;  // around every call of NCCL on comm_
  ncclComm_t comm_ = nullptr;
  std::atomic<bool> is_aborted_{false};
};

}  // namespace hvd
