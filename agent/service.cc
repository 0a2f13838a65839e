#include "agent/service.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "agent/own_children.h"
#include "agent/peer_user.h"
#include "base/log.h"

namespace hvd {
namespace {

// Without a free descriptor the connection would be reported again and again.
constexpr auto kPause = std::chrono::milliseconds(100);

}  // namespace

Service::Service(Loop& loop, std::optional<ServiceSocket> socket, Session::Place place)
    : loop_(loop),
      socket_(std::move(socket)),
      listener_(loop),
      tls_(loop, [this](UniqueFd stream,
                        const std::string& who) { begin_session(std::move(stream), who); }),
      place_(std::move(place)) {}

Result<void> Service::start(const ServiceConfig& config) {
  if (config.tls) {
    if (auto started = tls_.start(config); !started) return started;
  }
  if (!socket_) return {};
  boost::system::error_code ignored;
  listener_.assign(fcntl(socket_->fd(), F_DUPFD_CLOEXEC, 0), ignored);
  boost::asio::co_spawn(loop_, accept(), boost::asio::detached);
  return {};
}

Result<void> Service::reload(const ServiceConfig& config) {
  return config.tls ? tls_.reload(config) : Result<void>();
}

Task<void> Service::accept() {
  boost::asio::steady_timer pause(loop_);
  while (!is_stopping_) {
    const auto [error] =
        co_await listener_.async_wait(boost::asio::posix::stream_descriptor::wait_read, kAwait);
    if (error) co_return;
    if (take_connection()) continue;
    log(LogLevel::kError, "no connection can be taken: {}", strerror(errno));
    pause.expires_after(kPause);
    co_await pause.async_wait(kAwait);
  }
}

// False if there is one and it cannot be taken.
bool Service::take_connection() {
  UniqueFd stream(accept4(socket_->fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!stream.is_valid()) return errno == EAGAIN || errno == ECONNABORTED || errno == EINTR;
  const auto peer = peer_user(stream.get());
  if (peer && is_served(peer->uid, geteuid())) {
    begin_session(std::move(stream), fmt::format("pid {} (uid {})", peer->pid, peer->uid));
    return true;
  }
  log(LogLevel::kWarning, "refused pid {} (uid {}): only user {} and root are served",
      peer ? peer->pid : 0, peer ? peer->uid : 0, geteuid());
  const std::string why = fmt::format("hvd-agent serves user {} and root only\n", geteuid());
  [[maybe_unused]] const ssize_t n =
      ::send(stream.get(), why.data(), why.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return true;
}

void Service::begin_session(UniqueFd stream, const std::string& who) {
  const std::uint64_t id = ++last_id_;
  const auto made = sessions_.try_emplace(id, loop_, std::move(stream), who, place_);
  boost::asio::co_spawn(loop_, made.first->second.run(),
                        [this, id](const std::exception_ptr&) { end_session(id); });
}

void Service::end_session(std::uint64_t id) {
  const auto session = sessions_.find(id);
  log(LogLevel::kInfo, "session {} of {}", id, session->second.summary());
  sessions_.erase(session);
  // What a shim that died could not end, and has ended since.
  if (OwnChildren::has_dead_one()) OwnChildren::of(loop_).reap_strays();
  malloc_trim(0);  // what the output of a job took is not kept for the next
  if (is_stopping_ && sessions_.empty()) loop_.stop();
}

void Service::stop() {
  is_stopping_ = true;
  boost::system::error_code ignored;
  listener_.close(ignored);
  if (socket_) socket_->close();
  tls_.close();
  for (auto& [id, session] : sessions_) session.stop();
  if (sessions_.empty()) loop_.stop();
}

}  // namespace hvd
