// One worker of this node and its life as a table (state x event):
//
//   created   cloned -> starting; clone failed -> failed
//   starting  executed -> running; set-up failed -> failing; reaped (killed before exec) -> ended
//   running   reaped -> ended
//   failing   reaped -> failed
//   ended, failed: final
//
// Lifecycle: one per WorkerSpec, from the spawn to the shim's end. Owned by the shim, its thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>

#include "agent/shim/oom.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "hvdrun/v1/types.pb.h"

namespace hvd {

enum class WorkerState { kCreated, kStarting, kRunning, kFailing, kEnded, kFailed };
inline constexpr int kNumWorkerStates = 6;

enum class WorkerEvent { kCloned, kCloneFailed, kExecuted, kSetUpFailed, kReaped };
inline constexpr int kNumWorkerEvents = 5;

[[nodiscard]] const char* worker_state_name(WorkerState state);

// The state after the event; the same state if the event does not apply.
[[nodiscard]] WorkerState next_worker_state(WorkerState state, WorkerEvent event);

struct SpawnFailure {
  hvdrun::v1::SpawnStage stage = hvdrun::v1::SPAWN_STAGE_UNSPECIFIED;
  int errno_value = 0;
};

class Worker {
 public:
  Worker(std::uint32_t its_rank, std::string its_error_file, Nanos now)
      : rank(its_rank), error_file(std::move(its_error_file)), entered_(now) {}

  // Logs the change with the time spent.
  void handle(WorkerEvent event, Nanos now);
  [[nodiscard]] WorkerState state() const { return state_; }

  // Its leader is a process that has not been reaped: pid, group and session are certainly ours.
  [[nodiscard]] bool is_alive() const;

  void note_sent(int signal) { sent_signals_ |= std::uint64_t{1} << (signal - 1); }
  [[nodiscard]] bool was_sent(int signal) const {
    return signal > 0 && (sent_signals_ >> (signal - 1) & 1U) != 0;
  }

  const std::uint32_t rank;
  const std::string error_file;  // its TORCHELASTIC_ERROR_FILE; empty if none
  pid_t pid = -1;                // also its process group and session
  UniqueFd pidfd;
  UniqueFd status;  // end of file: it has been executed
  UniqueFd out;     // held until it runs, then the log pump's
  UniqueFd err;
  UniqueFd in;  // write end of its standard input, until it is taken; not valid: it reads /dev/null
  UniqueFd pmi;       // our end of its PMI descriptor, held until it runs
  OomCounter memory;  // from its exec on
  SpawnFailure failure;
  bool stood_still = false;  // stopped by a signal when the ladder began

 private:
  WorkerState state_ = WorkerState::kCreated;
  Nanos entered_;
  std::uint64_t sent_signals_ = 0;  // bit s-1: signal s went to its group
};

}  // namespace hvd
