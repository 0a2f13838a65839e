#include "launcher/transport/pump_link.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace hvd {
namespace {

constexpr std::size_t kPiece = 64 * 1024;
constexpr int kMaxRounds =
    32;  // libssh reads 4 KiB a round; then the other sessions have their turn

PumpLink& self_of(void* self) { return *static_cast<PumpLink*>(self); }

}  // namespace

PumpLink::PumpLink(int epoll, std::uint64_t id, PumpedSession parts)
    : epoll_(epoll),
      id_(id),
      parts_(std::move(parts)),
      session_(parts_.session->get()),
      channel_(parts_.session->channel()),
      event_(ssh_event_new()) {
  ssh_set_blocking(session_, 0);
  ssh_event_add_session(event_, session_);
  callbacks_.userdata = this;
  callbacks_.channel_data_function = on_data;
  callbacks_.channel_exit_status_function = on_exit_status;
  callbacks_.channel_exit_signal_function = on_exit_signal;
  ssh_callbacks_init(&callbacks_);
  ssh_set_channel_callbacks(channel_, &callbacks_);
}

// Callbacks go first: libssh 0.10 calls them on a freed channel otherwise.
PumpLink::~PumpLink() {
  // It may have come before there was a callback for it.
  const int status = ssh_channel_get_exit_status(channel_);
  if (status >= 0) parts_.side_text->set_ending(fmt::format("exit {}", status));
  ssh_remove_channel_callbacks(channel_, &callbacks_);
  ssh_event_remove_session(event_, session_);
  ssh_event_free(event_);
  set_interest(ssh_get_fd(session_), &session_interest_, 0);
  set_interest(parts_.socket.get(), &socket_interest_, 0);
}

bool PumpLink::advance() {
  const bool is_connected = handle_packets();
  if (flush_held()) drain_channel();
  send_socket_bytes();
  parts_.side_text->append(parts_.session->read_proxy_errors());
  if (is_broken_) return false;
  const bool is_over = !is_connected || ssh_channel_is_closed(channel_);
  if (is_over && held_.empty()) return false;
  finish_streams();
  watch();
  return true;
}

void PumpLink::say_goodbye() {
  send_socket_bytes();
  (void)ssh_channel_send_eof(channel_);
  (void)ssh_blocking_flush(session_, 0);
}

int PumpLink::on_data(ssh_session, ssh_channel, void* data, std::uint32_t size, int is_stderr,
                      void* self) {
  const std::string_view bytes(static_cast<const char*>(data), size);
  if (is_stderr) {
    self_of(self).parts_.side_text->append(bytes);
    return static_cast<int>(size);
  }
  return static_cast<int>(self_of(self).take_data(bytes));
}

void PumpLink::on_exit_status(ssh_session, ssh_channel, int status, void* self) {
  self_of(self).parts_.side_text->set_ending(fmt::format("exit {}", status));
}

void PumpLink::on_exit_signal(ssh_session, ssh_channel, const char* signal, int, const char*,
                              const char*, void* self) {
  self_of(self).parts_.side_text->set_ending(fmt::format("SIG{}", signal));
}

// Takes nothing while a packet is held: what is left stays in the channel and closes its window.
std::size_t PumpLink::take_data(std::string_view data) {
  if (!held_.empty()) {
    has_leftover_ = true;
    return 0;
  }
  ssize_t sent = ::send(parts_.socket.get(), data.data(), data.size(), MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) {
    is_broken_ = true;
    return data.size();
  }
  sent = std::max<ssize_t>(sent, 0);
  held_.assign(data.substr(static_cast<std::size_t>(sent)));
  held_offset_ = 0;
  return data.size();
}

// False when the connection has ended.
bool PumpLink::handle_packets() {
  for (int round = 0; round < kMaxRounds; ++round) {
    const int result = ssh_event_dopoll(event_, 0);
    if (result == SSH_ERROR || !ssh_is_connected(session_)) return false;
    if (result != SSH_OK) break;
  }
  return true;
}

// False while the socket does not take more.
bool PumpLink::flush_held() {
  while (held_offset_ < held_.size() && !is_broken_) {
    const ssize_t sent = ::send(parts_.socket.get(), held_.data() + held_offset_,
                                held_.size() - held_offset_, MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) return false;
    if (sent < 0 && errno != EINTR) is_broken_ = true;
    if (sent > 0) held_offset_ += static_cast<std::size_t>(sent);
  }
  held_.clear();
  held_offset_ = 0;
  return !is_broken_;
}

// What callbacks left in the channel, or what came before there were any.
void PumpLink::drain_channel() {
  if (!std::exchange(has_leftover_, false)) return;
  std::array<char, kPiece> buffer;
  for (const int is_stderr : {1, 0}) {
    while (held_.empty() && !is_broken_) {
      const int size = ssh_channel_read_nonblocking(channel_, buffer.data(), kPiece, is_stderr);
      if (size <= 0) break;
      on_data(session_, channel_, buffer.data(), static_cast<std::uint32_t>(size), is_stderr, this);
    }
  }
  has_leftover_ |= !held_.empty();
}

// Reads only what the channel's window takes.
void PumpLink::send_socket_bytes() {
  std::array<char, kPiece> buffer;
  while (!is_socket_at_end_ && !(ssh_get_status(session_) & SSH_WRITE_PENDING)) {
    const std::size_t window = ssh_channel_window_size(channel_);
    if (window == 0) return;
    const ssize_t size =
        ::recv(parts_.socket.get(), buffer.data(), std::min(window, buffer.size()), 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    is_socket_at_end_ = size <= 0;
    if (is_socket_at_end_) return;
    const int written =
        ssh_channel_write(channel_, buffer.data(), static_cast<std::uint32_t>(size));
    is_broken_ |=
        written != size;  // within the window libssh takes all, unless the session is dead
  }
}

void PumpLink::finish_streams() {
  if (is_socket_at_end_ && !is_channel_at_end_) {
    is_channel_at_end_ = true;
    (void)ssh_channel_send_eof(channel_);
  }
  if (ssh_channel_is_eof(channel_) && held_.empty()) ::shutdown(parts_.socket.get(), SHUT_WR);
}

void PumpLink::watch() {
  const bool is_pending = ssh_get_status(session_) & SSH_WRITE_PENDING;
  const bool may_read = !is_socket_at_end_ && !is_pending && ssh_channel_window_size(channel_) > 0;
  set_interest(ssh_get_fd(session_), &session_interest_, EPOLLIN | (is_pending ? EPOLLOUT : 0U));
  // Without interest the socket leaves the set: a hang-up would be reported without end.
  set_interest(parts_.socket.get(), &socket_interest_,
               (may_read ? EPOLLIN : 0U) | (held_.empty() ? 0U : EPOLLOUT));
}

void PumpLink::set_interest(int fd, std::uint32_t* current, std::uint32_t wanted) const {
  if (fd < 0 || *current == wanted) return;
  epoll_event event{};
  event.events = wanted;
  event.data.u64 = id_;
  const int operation =
      wanted == 0 ? EPOLL_CTL_DEL : (*current == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD);
  ::epoll_ctl(epoll_, operation, fd, &event);
  *current = wanted;
}

}  // namespace hvd
