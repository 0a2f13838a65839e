// This worker under the eyes of its launcher: tells it in short periods what the worker does, and
// takes what the launcher has to say: leave, or write down what you know.
//
// Lifecycle: started after the registration of a worker of hvdrun; destroyed at its end, which the
// launcher sees as a worker that needs no watching any more. Threads: one of its own sends and
// calls back, and waits for nothing else; a callback may take its time or end the process, but must
// not destroy the monitor.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "runtime/activity_board.h"

namespace hvd {

class WorkerMonitor {
 public:
  struct Settings {
    std::string socket_path;  // of the agent: HVDRUN_RENDEZVOUS
    int rank = 0;
    int size = 1;
    std::uint32_t generation = 0;
    std::chrono::milliseconds period{0};         // 0: HVDRUN_BEAT_MS, or 2 s
    std::chrono::milliseconds lost_grace{5000};  // an agent that has gone is told of after this
  };
  using OnNotice = std::function<void(const std::string& reason)>;

  // `board` is not owned and outlives the monitor. on_abort: the job has failed, or the agent has
  // gone; called at most once. on_dump: may come several times. An agent that does not know of
  // heartbeats is no error: nobody watches then.
  [[nodiscard]] static Result<std::unique_ptr<WorkerMonitor>> start(Settings settings,
                                                                    const ActivityBoard& board,
                                                                    OnNotice on_abort,
                                                                    OnNotice on_dump);

  WorkerMonitor(const WorkerMonitor&) = delete;
  WorkerMonitor& operator=(const WorkerMonitor&) = delete;
  ~WorkerMonitor();

 private:
  class Call;
  struct Impl;
  explicit WorkerMonitor(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace hvd
