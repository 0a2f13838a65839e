#include "launcher/transport/pump.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>

#include "launcher/transport/pump_link.h"

namespace hvd {
namespace {

constexpr std::uint64_t kWakeup = 0;  // ids of sessions begin with 1

}  // namespace

Pump::Pump()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wakeup_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakeup;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wakeup_.get(), &event);
}

Pump::~Pump() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
}

std::uint64_t Pump::add(PumpedSession session) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t id = next_id_++;
  added_.emplace_back(id, std::move(session));
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  wake();
  return id;
}

void Pump::drop(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  dropped_.push_back(id);
  wake();
}

void Pump::wake() {
  const std::uint64_t one = 1;
  (void)!::write(wakeup_.get(), &one, sizeof(one));
}

void Pump::run() {
  std::array<epoll_event, 64> events;
  while (true) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), -1);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
      // Both descriptors of a session may be among the events, and the first may end it.
      const auto link = links_.find(id);
      if (link != links_.end() && !link->second->advance()) links_.erase(link);
      if (id == kWakeup && !take_orders()) return;
    }
  }
}

// False when the pump is to stop.
bool Pump::take_orders() {
  std::uint64_t count = 0;
  (void)!::read(wakeup_.get(), &count, sizeof(count));
  std::vector<std::pair<std::uint64_t, PumpedSession>> added;
  std::vector<std::uint64_t> dropped;
  bool is_stopping = false;
  {
    const std::lock_guard lock(mutex_);
    added.swap(added_);
    dropped.swap(dropped_);
    is_stopping = is_stopping_;
  }
  for (auto& [id, session] : added) {
    auto link = std::make_unique<PumpLink>(epoll_.get(), id, std::move(session));
    if (link->advance()) links_.emplace(id, std::move(link));
  }
  for (const std::uint64_t id : dropped) {
    const auto link = links_.find(id);
    if (link == links_.end()) continue;
    link->second->say_goodbye();
    links_.erase(link);
  }
  if (!is_stopping) return true;
  for (auto& [id, link] : links_) link->say_goodbye();
  links_.clear();
  return false;
}

}  // namespace hvd
