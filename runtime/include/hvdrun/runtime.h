// A rank of a job, whoever started it: hvdrun, torchrun, mpirun, srun, or nobody (one process).
//
//   auto runtime = hvd::Runtime::init({.plan = "my model, batch 4"});
//   if (!runtime) { print runtime.error().message; return int(runtime.error().code); }
//   (*runtime)->cpu().all_reduce(...);
//   if (auto done = (*runtime)->finalize(); !done) (*runtime)->leave(done.error());
//
// init() finds the rank's place in the environment, meets the other ranks, lets all of them be
// checked against each other, connects them over TCP and, under hvdrun, begins to send heartbeats.
// docs/runtime.md lists the variables and the exit codes.
//
// A worker never hangs: when the launcher says that another rank is gone, when a collective fails
// or a time limit passes, the first cause is printed with this rank's name, what is known is
// written down, all communicators are aborted, and the process ends with the cause's exit code
// within 10 s (HVDRUN_ABORT_TIMEOUT_MS), whatever hangs.
//
// Lifecycle: one in a process's life; made by init(), ended by finalize() (all ranks) or
// leave(), destroyed. Threads: one at a time, except leave(), which any thread may call.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/status.h"
#include "hvdrun/communicator.h"
#include "hvdrun/place.h"

namespace hvd {

class ActivityBoard;   // runtime/activity_board.h
class FlightRecorder;  // runtime/flight_recorder.h
class Timeline;        // runtime/timeline.h

struct InitOptions {
  std::chrono::milliseconds start_timeout{120'000};  // until all ranks are connected
  std::string plan = {};                             // in words; ranks with another one are refused
  int device = -1;                 // CUDA ordinal of this rank's GPU; -1: CPU only
  std::string torch_version = {};  // where the program has one: must be equal on all ranks, too
  // The operations of cpu() stand in the flight recorder and in the heartbeats, so that a stall is
  // seen. false beside a GradientSynchronizer, which records its buckets itself.
  bool records_collectives = true;
};

// The place of this process as its launcher told it, before init(): to choose a GPU by local_rank.
// local_size and the cross fields may be 0 until init() has counted them.
[[nodiscard]] Result<Place> place_of_this_process();
// Whether ranks may be given a GPU that another has, too: HVDRUN_ALLOW_SHARED_GPU=1, for tests.
[[nodiscard]] bool may_share_gpus();

class Runtime {
 public:
  // Once in a process's life, by every rank; a second call is refused (2) and harms nothing. The
  // error's code is the exit code to end with: 2 for the environment, 71 for a peer that went, 73
  // for ranks that do not fit together, 124 for the start's time limit, 70 for the rest.
  [[nodiscard]] static Result<std::unique_ptr<Runtime>> init(const InitOptions& options);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  [[nodiscard]] const Place& place() const;

  // Between the CPUs. Owned here, as all below.
  [[nodiscard]] Communicator& cpu();
  // Between the GPUs (NCCL), made by the first call, which every rank makes; needs
  // InitOptions::device, and a build with CUDA. Its failure ends the process as described above.
  [[nodiscard]] Result<Communicator*> cuda();

  [[nodiscard]] ActivityBoard& activity();
  [[nodiscard]] FlightRecorder& recorder();
  // Null: no timeline was asked for.
  [[nodiscard]] Timeline* timeline();

  // Ends the process because of `cause`, with its code; the communicators are aborted, so that the
  // other ranks learn of it. If something failed before, that is the cause.
  [[noreturn]] void leave(Error cause);

  // The regular end, called by every rank: returns when all have called it. Nothing but destruction
  // may follow; after an error, leave().
  [[nodiscard]] Result<void> finalize(std::chrono::milliseconds timeout = std::chrono::seconds(30));

 private:
  struct Impl;
  explicit Runtime(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hvd
