// A program that carries a node's stream (ssh, kubectl, our own agent), watched on the loop: its
// standard error is always read, its end is noticed and reaped.
//
// Lifecycle: the connection and the two watching coroutines end independently, hence shared_ptr;
// the last of them frees it. Thread: the loop's.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>
#include <string>

#include "base/loop.h"
#include "launcher/transport/child_process.h"
#include "launcher/transport/side_text.h"

namespace hvd {

class HelperProcess : public std::enable_shared_from_this<HelperProcess> {
 public:
  // How a helper goes that does not leave by itself after the end of its stream.
  enum class Ending {
    kBySignal,  // SIGTERM to its group after a moment, SIGKILL after another
    kByItself,  // an agent: it first cleans its node up
  };

  // `patience`: how long kByItself may take; then it is killed.
  static std::shared_ptr<HelperProcess> watch(Loop& loop, ChildProcess child, Ending ending,
                                              SteadyTime::duration patience = {});
  HelperProcess(Loop& loop, ChildProcess child, Ending ending, SteadyTime::duration patience);
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;
  ~HelperProcess();

  // Its taker closes it; end() does not wait for that.
  [[nodiscard]] UniqueFd take_stream();
  [[nodiscard]] int stream() const { return stream_.get(); }
  [[nodiscard]] const SideText& side_text() const { return side_text_; }

  // Returns when it has ended and its standard error was read, at most at the deadline.
  Task<void> wait_until_ended(SteadyTime deadline);

  // The stream ends, whoever has it; from now on the helper is to go.
  void end();

 private:
  Task<void> read_errors();
  Task<void> reap();
  Task<void> hasten();
  void signal_group(int signal) const;

  Loop& loop_;
  const Ending ending_;
  const SteadyTime::duration patience_;
  const pid_t pid_;
  UniqueFd stream_;
  UniqueFd taken_stream_;  // a second descriptor of it, once taken from who is ended by signal
  boost::asio::posix::stream_descriptor pidfd_;
  boost::asio::posix::stream_descriptor error_pipe_;
  SideText side_text_;
  Event has_ended_;
  Event has_read_errors_;
  bool is_ending_ = false;
};

}  // namespace hvd
