#include "runtime/nccl_handle.h"

#include <utility>

#include "runtime/poll_until.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;

// A call of a non-blocking communicator returns at once; one that does not must not hold abort up.
constexpr milliseconds kLockPatience{1000};

NcclEnd aborted() { return {NcclEnd::Kind::kAborted, "the communicator was aborted"}; }

}  // namespace

NcclHandle::~NcclHandle() { abort(); }

NcclEnd NcclHandle::end_of(ncclResult_t result) const {
  if (is_aborted_) return aborted();
  if (result == ncclSuccess) return {};
  const char* detail = comm_ != nullptr ? ncclGetLastError(comm_) : nullptr;
  std::string text = ncclGetErrorString(result);
  if (detail != nullptr && *detail != '\0') text += fmt::format(" ({})", detail);
  const bool is_remote = result == ncclRemoteError || result == ncclSystemError;
  return {NcclEnd::Kind::kError, std::move(text), is_remote};
}

NcclEnd NcclHandle::follow(ncclResult_t first, SteadyTime deadline) {
  ncclResult_t result = first;
  const auto is_settled = [&] {
    if (result != ncclInProgress) return true;
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) return false;
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &result);
    if (asked != ncclSuccess) result = asked;
    return result != ncclInProgress;
  };
  switch (poll_until(deadline, is_settled, [&] { return is_aborted_.load(); })) {
    case PollEnd::kSettled:
      break;
    case PollEnd::kGivenUp:
      return aborted();
    case PollEnd::kDeadline:
      return {NcclEnd::Kind::kDeadline, "NCCL was still at it"};
  }
  const std::lock_guard lock(mutex_);
  return end_of(result);
}

NcclEnd NcclHandle::init(int rank, int size, const ncclUniqueId& id, SteadyTime deadline) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclResult_t result = ncclSuccess;
  {
    const std::lock_guard lock(mutex_);
    result = ncclCommInitRankConfig(&comm_, size, id, rank, &config);
  }
  return follow(result, deadline);
}

NcclEnd NcclHandle::run(const std::function<ncclResult_t(ncclComm_t)>& call, SteadyTime deadline) {
  ncclResult_t result = ncclSuccess;
  {
    const std::lock_guard lock(mutex_);
    if (is_aborted_ || comm_ == nullptr) {
      return aborted();
    }
    result = call(comm_);
  }
  return follow(result, deadline);
}

NcclEnd NcclHandle::check() {
  const std::lock_guard lock(mutex_);
  if (is_aborted_ || comm_ == nullptr) return {};
  ncclResult_t result = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm_, &result);
  if (asked != ncclSuccess) return end_of(asked);
  return result == ncclInProgress ? NcclEnd{} : end_of(result);
}

NcclEnd NcclHandle::finalize(SteadyTime deadline) {
  NcclEnd end = run([](ncclComm_t comm) { return ncclCommFinalize(comm); }, deadline);
  if (end.kind != NcclEnd::Kind::kOk) return end;
  const std::lock_guard lock(mutex_);
  ncclComm_t comm = std::exchange(comm_, nullptr);
  return comm == nullptr ? end : end_of(ncclCommDestroy(comm));
}

void NcclHandle::abort() {
  is_aborted_ = true;
  std::unique_lock lock(mutex_, std::defer_lock);
  const bool is_locked = lock.try_lock_for(kLockPatience);
  ncclComm_t comm = std::exchange(comm_, nullptr);
  if (is_locked) lock.unlock();  // freeing may take long, and nobody uses it any more
  if (comm != nullptr) ncclCommAbort(comm);
}

}  // namespace hvd
