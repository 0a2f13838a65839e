// The agent's hold on its shim: messages, a ping that must be answered, and its end. A shim that
// answers no ping for half a lease is killed: it could not stop its workers either, and they die
// with it.
//
// Lifecycle: as long as the job; on_gone comes once, after the last message. Thread: the loop's.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <optional>
#include <string>

#include "agent/own_children.h"
#include "agent/shim_channel.h"
#include "agent/shim_process.h"
#include "base/loop.h"

namespace hvd {

class ShimWatch {
 public:
  struct Handlers {
    std::function<void(hvdrun::v1::FromShim&&)> on_message;  // pongs left out
    std::function<void()> on_batch;
    std::function<void()> on_gone;                       // reaped; see end_text()
    std::function<void(const std::string&)> on_problem;  // one sentence
  };

  ShimWatch(Loop& loop, ShimProcess shim, Handlers handlers);

  [[nodiscard]] pid_t pid() const { return pid_; }
  bool send(const hvdrun::v1::ToShim& message) { return channel_.send(message); }

  // The shim sees end of stream; it leaves by itself.
  void close() {
    is_channel_ended_ = true;
    channel_.close();
  }

  // Tells nothing any more. A shim that is still there is killed, and whoever sweeps reaps it.
  void leave();

  // From now on pings go out each quarter of the lease.
  void start_pings(Nanos lease);

  // "died of signal 9", "left with code 1": once gone.
  [[nodiscard]] const std::string& end_text() const { return end_text_; }

 private:
  void take_message(hvdrun::v1::FromShim&& message);
  void tick();
  void watch_process();
  void take_channel_end();
  void take_process_end();
  void kill();
  void arm_end(std::chrono::milliseconds delay, std::function<void()> action);
  void tell_gone();

  const Handlers handlers_;
  const pid_t pid_;
  std::optional<OwnChild> child_;  // until it was reaped
  boost::asio::posix::stream_descriptor pidfd_;
  boost::asio::steady_timer ping_timer_;
  boost::asio::steady_timer end_timer_;
  ShimChannel channel_;
  Nanos lease_{0};
  Nanos last_pong_{0};  // boot time
  std::uint64_t ping_id_ = 0;
  std::string end_text_;
  bool is_channel_ended_ = false;
  bool is_reaped_ = false;
  bool is_gone_told_ = false;
};

}  // namespace hvd
