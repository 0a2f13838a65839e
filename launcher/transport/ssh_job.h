// One node's log-in as the loop and a pool thread share it. The thread works and reports; the loop
// waits, and ends it by cancel(), which shuts down every socket that the thread may be blocked on.
//
// Lifecycle: loop side and thread end independently (a thread can be held up inside a library
// call), hence shared_ptr. Thread: every function may be called on any.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/loop.h"
#include "base/unique_fd.h"
#include "launcher/transport/transport.h"

namespace hvd {

class SshJob : public std::enable_shared_from_this<SshJob> {
 public:
  SshJob(Loop& loop, const OpenRequest& request)
      : target_(request.target),
        deadline_(request.deadline),
        connect_by_(std::min(request.connect_by, request.deadline)),
        loop_(&loop),
        on_phase_(request.on_phase) {}

  [[nodiscard]] const Target& target() const { return target_; }
  [[nodiscard]] SteadyTime deadline() const { return deadline_; }
  [[nodiscard]] SteadyTime connect_by() const { return connect_by_; }
  [[nodiscard]] bool is_over() const {
    return is_cancelled_ || std::chrono::steady_clock::now() >= deadline_;
  }
  [[nodiscard]] Phase phase() const { return phase_; }

  void enter(Phase phase);

  // Runs on the loop, unless the job is cancelled by then.
  void post(std::function<void()> function);

  // Sleeps until cancel(), at most for `duration` and to the deadline. False when the job is over.
  bool pause(std::chrono::nanoseconds duration);

  // From the loop; the thread's next blocking call fails. Nothing is posted any more.
  void cancel();

  // A socket that cancel() shuts down while the guard lives. It holds a copy of the descriptor, so
  // that a library may close its own.
  class Guard {
   public:
    Guard(SshJob& job, int socket);
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard();

   private:
    friend class SshJob;
    SshJob& job_;
    UniqueFd copy_;
  };

 private:
  const Target target_;
  const SteadyTime deadline_;
  const SteadyTime connect_by_;
  std::atomic<bool> is_cancelled_ = false;
  std::atomic<Phase> phase_ = Phase::kWaiting;
  std::mutex mutex_;
  std::condition_variable cancelled_;
  Loop* loop_;                           // guarded by mutex_; null after cancel()
  std::function<void(Phase)> on_phase_;  // called on the loop
  std::vector<Guard*> guards_;           // guarded by mutex_
};

}  // namespace hvd
