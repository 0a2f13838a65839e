#include "agent/shim/poller.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace hvd {

Result<void> Poller::open() {
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  timer_.reset(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!epoll_.is_valid() || !timer_.is_valid()) {
    return make_error("the shim cannot make its event loop: {}", std::strerror(errno));
  }
  watch(timer_.get(), EPOLLIN, [this](std::uint32_t) {
    std::uint64_t expirations = 0;
    if (read(timer_.get(), &expirations, sizeof expirations) > 0) armed_ = Nanos::max();
  });
  return {};
}

void Poller::control(int operation, int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = (std::uint64_t{watches_[fd].generation} << 32U) | static_cast<unsigned>(fd);
  epoll_ctl(epoll_.get(), operation, fd, &event);
}

void Poller::watch(int fd, std::uint32_t events, Handler handler) {
  watches_[fd] = Watch{++generation_, std::make_shared<Handler>(std::move(handler))};
  control(EPOLL_CTL_ADD, fd, events);
}

void Poller::change(int fd, std::uint32_t events) { control(EPOLL_CTL_MOD, fd, events); }

void Poller::forget(int fd) {
  if (watches_.erase(fd) > 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void Poller::wake_at(Nanos boottime) {
  // An alarm that is too early costs one wake-up; re-arming at each heartbeat would cost more.
  if (boottime >= armed_) return;
  armed_ = boottime;
  const Nanos when = std::max(boottime, Nanos(1));  // zero would disarm
  itimerspec spec{};
  spec.it_value.tv_sec = when.count() / 1'000'000'000;
  spec.it_value.tv_nsec = when.count() % 1'000'000'000;
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

void Poller::run_once(bool is_busy) {
  std::array<epoll_event, 64> events;
  const int n = epoll_wait(epoll_.get(), events.data(), events.size(), is_busy ? 0 : -1);
  for (int i = 0; i < n; ++i) {
    const int fd = static_cast<int>(events[i].data.u64 & 0xffffffffU);
    const auto found = watches_.find(fd);
    // The generation tells an event of a descriptor that an earlier handler of this batch closed.
    if (found == watches_.end() || found->second.generation != events[i].data.u64 >> 32U) continue;
    const std::shared_ptr<Handler> handler = found->second.handler;
    (*handler)(events[i].events);
  }
}

}  // namespace hvd
