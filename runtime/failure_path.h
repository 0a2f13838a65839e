// How a worker ends when it must: the first cause is printed with the rank's name, what is known is
// written down, every communicator is aborted at once (a thread each: one that hangs must not keep
// the others), and the process leaves by _exit with the cause's code. Never by exit(): after an
// abort nothing may be destroyed.
//
// Whatever hangs on the way, the process is gone at the limit: 76 (WorkerExit::kAbortHung).
//
// Lifecycle: made before the first thing that can fail, ended (by destruction) when the worker has
// finished well; a destruction while the path is being walked waits for its end. Threads: report()
// from any, also a communicator's own: it returns at once. Two threads of its own, made at the
// start, for a process in trouble may get no more.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "hvdrun/communicator.h"

namespace hvd {

class FailurePath {
 public:
  struct Settings {
    std::string who;                           // "rank 3 on node2"
    std::chrono::milliseconds limit{10'000};   // from the first cause to the end
    std::function<void(const Error&)> record;  // writes down what is known; may take its time
    std::function<void(int code)> leave;       // _exit; of tests: another end
  };
  explicit FailurePath(Settings settings);
  ~FailurePath();
  FailurePath(const FailurePath&) = delete;
  FailurePath& operator=(const FailurePath&) = delete;

  // Aborted on the way. Not owned; outlives this, or is removed before its end.
  void add(Communicator* communicator);
  void remove(const Communicator* communicator);

  // The first one counts, and only it; its code is the process's.
  void report(Error cause);

  // Never returns: reports, and waits for the end of the process.
  [[noreturn]] void leave(Error cause);

  // `cause` is reported at `when`, unless it is disarmed before: for what may hang and has no limit
  // of its own. One at a time.
  void arm(SteadyTime when, Error cause);
  void disarm();

  [[nodiscard]] bool is_failing() const;

  // The worker has ended well: what is reported from now on is not heard. Does not return where a
  // failure is on its way.
  void close();

 private:
  void walk();
  void watch();
  void abort_all(const Error& cause);

  const Settings settings_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Communicator*> communicators_;  // guarded by mutex_, as all below
  std::optional<Error> cause_;
  SteadyTime end_{};  // of the path, once there is a cause
  std::optional<std::pair<SteadyTime, Error>> armed_;
  bool is_over_ = false;  // the worker ends well
  bool has_left_ = false;
  std::thread walker_;
  std::thread watcher_;
};

}  // namespace hvd
