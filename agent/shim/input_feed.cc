#include "agent/shim/input_feed.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace hvd {

InputFeed::InputFeed(Poller& poller, UniqueFd pipe, Tell tell)
    : poller_(poller), tell_(std::move(tell)), pipe_(std::move(pipe)) {
  // Without an event of ours the kernel still tells when the last reader has gone.
  poller_.watch(pipe_.get(), 0, [this](std::uint32_t events) { on_events(events); });
}

InputFeed::~InputFeed() { close(); }

void InputFeed::push(std::string data) {
  if (!pipe_.is_valid() || has_end_) return;
  queue_.push_back(std::move(data));
  flush();
}

void InputFeed::end() {
  has_end_ = true;
  flush();
}

void InputFeed::on_events(std::uint32_t events) {
  if ((events & EPOLLERR) != 0) {
    close();
    return tell_(0, true);
  }
  flush();
}

void InputFeed::flush() {
  std::uint64_t taken = 0;
  bool is_broken = false;
  while (pipe_.is_valid() && !queue_.empty()) {
    const std::string& piece = queue_.front();
    const ssize_t n = write(pipe_.get(), piece.data() + written_, piece.size() - written_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      is_broken = errno != EAGAIN;
      break;
    }
    taken += static_cast<std::uint64_t>(n);
    written_ += static_cast<std::size_t>(n);
    if (written_ < piece.size()) continue;
    queue_.pop_front();
    written_ = 0;
  }
  const bool is_over = is_broken || (queue_.empty() && has_end_);
  if (is_over) {
    close();
  } else {
    watch_for_room(!queue_.empty());
  }
  if (taken > 0 || is_broken) tell_(taken, is_broken);
}

void InputFeed::watch_for_room(bool is_wanted) {
  if (!pipe_.is_valid() || is_wanted == is_waiting_) return;
  is_waiting_ = is_wanted;
  poller_.change(pipe_.get(), is_wanted ? std::uint32_t{EPOLLOUT} : 0U);
}

void InputFeed::close() {
  if (!pipe_.is_valid()) return;
  poller_.forget(pipe_.get());
  pipe_.reset();
  queue_.clear();
}

}  // namespace hvd
