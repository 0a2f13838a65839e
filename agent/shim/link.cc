#include "agent/shim/link.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <utility>

namespace hvd {

Link::Link(Poller& poller, UniqueFd socket, Handlers handlers)
    : poller_(poller), handlers_(std::move(handlers)), socket_(std::move(socket)) {
  fcntl(socket_.get(), F_SETFL, fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
  fcntl(socket_.get(), F_SETFD, FD_CLOEXEC);
  poller_.watch(socket_.get(), EPOLLIN, [this](std::uint32_t events) { on_events(events); });
}

Link::~Link() {
  if (is_open()) poller_.forget(socket_.get());
}

void Link::send(const hvdrun::v1::FromShim& message) {
  if (!is_open()) return;
  std::string frame = encode_frame(message);
  if (frame.empty()) return;
  queue_.push_back(std::move(frame));
  if (!is_waiting_to_write_) flush();
}

void Link::on_events(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) flush();
  if (is_open() && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) receive();
}

void Link::receive() {
  std::array<char, 65536> buffer;
  const ssize_t n = recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (n < 0 && is_try_again()) return;
  if (n <= 0) return end();
  decoder_.append({buffer.data(), static_cast<std::size_t>(n)});
  deliver();
}

void Link::deliver() {
  while (const auto body = decoder_.next()) {
    hvdrun::v1::ToShim message;
    if (!message.ParseFromArray(body->data(), static_cast<int>(body->size()))) return end();
    handlers_.on_message(message);
  }
  if (decoder_.is_broken()) end();
}

void Link::flush() {
  while (!queue_.empty()) {
    std::array<iovec, 16> parts;
    std::size_t num_parts = 0;
    for (; num_parts < std::min(parts.size(), queue_.size()); ++num_parts) {
      const std::size_t skip = num_parts == 0 ? sent_ : 0;
      std::string& frame = queue_[num_parts];
      parts[num_parts] = {frame.data() + skip, frame.size() - skip};
    }
    msghdr header{};
    header.msg_iov = parts.data();
    header.msg_iovlen = num_parts;
    ssize_t n = sendmsg(socket_.get(), &header, MSG_NOSIGNAL);
    if (n < 0 && !is_try_again()) {
      queue_.clear();  // nobody reads any more; the end of file is seen by receive()
      break;
    }
    if (n < 0) break;
    for (sent_ += n; !queue_.empty() && sent_ >= queue_.front().size(); queue_.pop_front()) {
      sent_ -= queue_.front().size();
    }
  }
  if (is_waiting_to_write_ == queue_.empty()) {
    is_waiting_to_write_ = !queue_.empty();
    poller_.change(socket_.get(), EPOLLIN | (is_waiting_to_write_ ? EPOLLOUT : 0U));
  }
}

void Link::end() {
  poller_.forget(socket_.get());
  socket_.reset();
  queue_.clear();
  handlers_.on_end();
}

}  // namespace hvd
