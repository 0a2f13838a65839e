// The shim's loop: descriptors with handlers, and one alarm on CLOCK_BOOTTIME (it counts a
// suspended machine, as leases do). No threads, no wake-up without cause. A handler may watch and
// forget any descriptor, its own included.
#pragma once

#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace hvd {

// Whether the last call on a non-blocking descriptor only came too early.
[[nodiscard]] inline bool is_try_again() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

class Poller {
 public:
  using Handler = std::function<void(std::uint32_t events)>;

  [[nodiscard]] Result<void> open();

  // `events` as for epoll. The caller owns the descriptor and forgets it before closing it.
  void watch(int fd, std::uint32_t events, Handler handler);
  void change(int fd, std::uint32_t events);
  void forget(int fd);

  // run_once() returns at this time at the latest; Nanos::max(): never by itself.
  void wake_at(Nanos boottime);

  // Waits for events, unless `is_busy`, and handles those that there are.
  void run_once(bool is_busy);

 private:
  struct Watch {
    std::uint32_t generation = 0;
    std::shared_ptr<Handler>
        handler;  // shared with the dispatch under way: a handler may forget itself
  };
  void control(int operation, int fd, std::uint32_t events);

  UniqueFd epoll_;
  UniqueFd timer_;
  Nanos armed_ = Nanos::max();
  std::uint32_t generation_ = 0;
  std::unordered_map<int, Watch> watches_;
};

}  // namespace hvd
