// A time limit: calls back once when it has passed, on the loop, unless it is taken back before.
//
// Lifecycle: may be destroyed at any time, also with the timer's handler already queued: then
// nothing is called. Thread: the loop's.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/loop.h"

namespace hvd {

class LimitTimer {
 public:
  explicit LimitTimer(Loop& loop) : timer_(loop) {}

  // In place of a limit that is still running.
  template <typename OnPassed>
  void start(Nanos limit, OnPassed on_passed) {
    timer_.expires_after(limit);
    timer_.async_wait([on_passed = std::move(on_passed),
                       alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
      if (!error && !alive.expired()) on_passed();
    });
  }
  void cancel() { timer_.cancel(); }

 private:
  boost::asio::steady_timer timer_;
  const std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace hvd
