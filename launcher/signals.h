// The signals that hvdrun reacts to: a pipe takes them, whatever the job does, and the job of the
// moment turns them into one callback on its loop. What was ignored at the
// start stays so: HUP of nohup, INT and QUIT of a script's background jobs, TSTP of a shell without
// job control. PIPE is ignored, a write says EPIPE instead; so are TTIN and TTOU, because a stopped
// hvdrun loses its leases.
//
// Lifecycle: one SignalPipe for all attempts, so that a signal between two of them is the next
// one's; its destructor gives the signals back as they were. One SignalWatch at a time reads it.
// Thread: the loop's.
#pragma once

#include <signal.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <utility>
#include <vector>

#include "base/loop.h"
#include "base/unique_fd.h"
#include "launcher/stop_wishes.h"

namespace hvd {

class SignalPipe {
 public:
  // `further`: beside INT, TERM, HUP, QUIT, TSTP, USR1 and USR2.
  explicit SignalPipe(const std::vector<int>& further);
  ~SignalPipe();
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;
  // Of ReceivedSignals; -1: there is none, and signals act as ever.
  [[nodiscard]] int read_end() const { return read_end_.get(); }

 private:
  void watch(int signal);

  std::vector<std::pair<int, struct sigaction>> before_;  // what was set where we listen
  UniqueFd read_end_;
  UniqueFd write_end_;  // the handler's
};

class SignalWatch {
 public:
  using OnSignal = std::function<void(const ReceivedSignal&)>;

  SignalWatch(Loop& loop, const SignalPipe& pipe, OnSignal on_signal);
  // What comes from here on waits for the next one.
  void stop() { received_.close(); }

 private:
  void arm();
  void read_all();

  const OnSignal on_signal_;
  boost::asio::posix::stream_descriptor received_;
};

// Ends this process as the signal would have, so that shells see it and end their loops.
[[noreturn]] void die_of_signal(int signal);

}  // namespace hvd
