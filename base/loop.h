// The one thread that owns all state of a program: an io_context, coroutines that wait on it, and
// an event that coroutines wait for. Everything here is used on the loop's thread only, except
// post().
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>

#include "base/clock.h"

namespace hvd {

using Loop = boost::asio::io_context;

template <typename T = void>
using Task = boost::asio::awaitable<T>;

// Completion token of every wait: errors come back as values, nothing throws.
inline constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);

// A latch: wait() returns at once after set(); or, with next(), a bell. Waiters must not outlive it.
class Event {
 public:
  explicit Event(Loop& loop) : timer_(std::make_shared<Timer>(loop, SteadyTime::max())) {}
  void set() {
    is_set_ = true;
    timer_->cancel();
  }
  void clear() { is_set_ = false; }
  [[nodiscard]] bool is_set() const { return is_set_; }
  Task<void> wait() {
    while (!is_set_) co_await timer_->async_wait(kAwait);
  }
  // Until the next set(), whether it was set before or not.
  Task<void> next() { co_await timer_->async_wait(kAwait); }
  // Returns whether the event was set by the deadline.
  Task<bool> wait_until(SteadyTime deadline) {
    Timer limit(timer_->get_executor(), deadline);
    limit.async_wait([timer = timer_](const boost::system::error_code& error) {
      if (!error) timer->cancel();
    });
    while (!is_set_ && std::chrono::steady_clock::now() < deadline) {
      co_await timer_->async_wait(kAwait);
    }
    limit.cancel();
    co_return is_set_;
  }

 private:
  using Timer = boost::asio::steady_timer;
  // Shared with the handler of a deadline, which may still be queued when the event goes.
  std::shared_ptr<Timer> timer_;
  bool is_set_ = false;
};

}  // namespace hvd
