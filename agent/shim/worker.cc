#include "agent/shim/worker.h"

#include <array>

#include "base/log.h"

namespace hvd {
namespace {

using S = WorkerState;
using Row = std::array<WorkerState, kNumWorkerEvents>;

constexpr std::array<Row, kNumWorkerStates> kTable = {{
    // kCloned, kCloneFailed, kExecuted, kSetUpFailed, kReaped
    Row{S::kStarting, S::kFailed, S::kCreated, S::kCreated, S::kCreated},
    Row{S::kStarting, S::kStarting, S::kRunning, S::kFailing, S::kEnded},
    Row{S::kRunning, S::kRunning, S::kRunning, S::kRunning, S::kEnded},
    Row{S::kFailing, S::kFailing, S::kFailing, S::kFailing, S::kFailed},
    Row{S::kEnded, S::kEnded, S::kEnded, S::kEnded, S::kEnded},
    Row{S::kFailed, S::kFailed, S::kFailed, S::kFailed, S::kFailed},
}};
static_assert(kTable.size() == static_cast<std::size_t>(S::kFailed) + 1);
static_assert(kNumWorkerEvents == static_cast<int>(WorkerEvent::kReaped) + 1);

constexpr std::array<const char*, kNumWorkerStates> kStateNames = {"created", "starting", "running",
                                                                   "failing", "ended",    "failed"};
constexpr std::array<const char*, kNumWorkerEvents> kEventNames = {
    "cloned", "clone failed", "executed", "set-up failed", "reaped"};

}  // namespace

const char* worker_state_name(WorkerState state) {
  return kStateNames[static_cast<std::size_t>(state)];
}

WorkerState next_worker_state(WorkerState state, WorkerEvent event) {
  return kTable[static_cast<std::size_t>(state)][static_cast<std::size_t>(event)];
}

void Worker::handle(WorkerEvent event, Nanos now) {
  const WorkerState next = next_worker_state(state_, event);
  log(LogLevel::kDebug, "rank {}: {}: {} -> {} after {}", rank,
      kEventNames[static_cast<std::size_t>(event)], worker_state_name(state_),
      next == state_ ? "ignored" : worker_state_name(next), format_duration(now - entered_));
  if (next == state_) return;
  state_ = next;
  entered_ = now;
}

bool Worker::is_alive() const {
  return state_ == S::kStarting || state_ == S::kRunning || state_ == S::kFailing;
}

}  // namespace hvd
