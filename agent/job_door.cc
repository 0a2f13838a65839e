#include "agent/job_door.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "agent/peer_user.h"
#include "base/first_line.h"
#include "base/log.h"

namespace hvd {
namespace {

constexpr auto kLineLimit = std::chrono::seconds(5);
constexpr std::size_t kMaxLine = 1024;
constexpr std::string_view kStop = "stop ";
// Without a free descriptor a connection would be reported again and again.
constexpr auto kFullPause = std::chrono::milliseconds(100);

}  // namespace

JobDoor::JobDoor(Loop& loop, UniqueFd socket, Handlers handlers)
    : loop_(loop), socket_(std::move(socket)), handlers_(std::move(handlers)), listener_(loop) {}

void JobDoor::start() {
  boost::system::error_code ignored;
  listener_.assign(fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0), ignored);
  boost::asio::co_spawn(loop_, accept(), boost::asio::detached);
}

void JobDoor::close() {
  boost::system::error_code ignored;
  listener_.close(ignored);
  ::shutdown(socket_.get(), SHUT_RDWR);
}

Task<void> JobDoor::accept() {
  boost::asio::steady_timer pause(loop_);
  while (true) {
    const auto [error] =
        co_await listener_.async_wait(boost::asio::posix::stream_descriptor::wait_read, kAwait);
    if (error) co_return;
    UniqueFd connection(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.is_valid()) {
      boost::asio::co_spawn(loop_, meet(std::move(connection)), boost::asio::detached);
    } else if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
      pause.expires_after(kFullPause);
      co_await pause.async_wait(kAwait);
    }
  }
}

Task<void> JobDoor::meet(UniqueFd connection) {
  const auto peer = peer_user(connection.get());
  if (!peer || !is_served(peer->uid, geteuid())) {
    log(LogLevel::kWarning, "refused pid {} (uid {}) at the job's socket", peer ? peer->pid : 0,
        peer ? peer->uid : 0);
    co_return;
  }
  const auto line = co_await await_first_line(loop_, connection.get(), kMaxLine, kLineLimit);
  if (!line) co_return;
  if (*line == "stream") {
    handlers_.on_stream(std::move(connection));
    co_return;
  }
  const bool is_stop = line->starts_with(kStop);
  if (!is_stop && *line != "up") co_return;
  [[maybe_unused]] const ssize_t n =
      ::send(connection.get(), "ok\n", 3, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (is_stop) handlers_.on_stop(line->substr(kStop.size()));
}

}  // namespace hvd
