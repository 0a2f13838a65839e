#include "agent/service.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/write.hpp>
#include <utility>

#include "agent/front_line.h"
#include "agent/own_children.h"
#include "base/first_line.h"
#include "base/log.h"

namespace hvd {
namespace {

// Without a free descriptor the connection would be reported again and again.
constexpr auto kPause = std::chrono::milliseconds(100);
constexpr auto kGreetingLimit = std::chrono::seconds(10);

}  // namespace

Service::Service(Loop& loop, std::optional<ServiceSocket> socket, Session::Place place,
                 Config config)
    : loop_(loop),
      socket_(std::move(socket)),
      listener_(loop),
      config_(std::move(config)),
      refusals_(loop),
      place_(std::move(place)) {}

Result<void> Service::start() {
  if (!config_.folder.empty()) {
    desk_.emplace(loop_, FrontDesk::Place{config_.folder, place_.node_env}, config_.file,
                  refusals_);
    if (auto opened = desk_->open(); !opened) return opened;
  }
  if (desk_ && config_.file.tls) {
    tls_.emplace(loop_, *desk_, refusals_);
    if (auto started = tls_->start(config_.file, std::move(config_.listening)); !started) {
      return started;
    }
  }
  if (!socket_) return {};
  boost::system::error_code ignored;
  listener_.assign(fcntl(socket_->fd(), F_DUPFD_CLOEXEC, 0), ignored);
  boost::asio::co_spawn(loop_, accept(), boost::asio::detached);
  return {};
}

Result<void> Service::reload(const ServiceConfig& config) {
  if (config.tls != config_.file.tls || config.socket != config_.file.socket) {
    log(LogLevel::kWarning, "listen has changed; that takes a restart of the agent");
  }
  if (tls_ && config.tls) {
    if (auto loaded = tls_->reload(config); !loaded) return loaded;
  }
  if (desk_) desk_->reload(config);
  return {};
}

Task<std::size_t> Service::stop_jobs(const std::string& reason, SteadyTime limit) {
  if (!desk_) co_return 0;
  co_return co_await desk_->stop_all(reason, limit);
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
  const bool is_known = peer && (is_served(peer->uid, geteuid()) || peer->uid == config_.observer);
  if (is_known) {
    boost::asio::co_spawn(loop_, meet(std::move(stream), *peer), boost::asio::detached);
    return true;
  }
  refuse(stream, peer.value_or(PeerUser()),
         fmt::format("only user {} and root are served", geteuid()),
         fmt::format("hvd-agent serves user {} and root only\n", geteuid()));
  return true;
}

// `why` is for the log, `words` are for him.
void Service::refuse(const UniqueFd& stream, const PeerUser& peer, const std::string& why,
                     const std::string& words) {
  const std::string who = fmt::format("pid {} (uid {})", peer.pid, peer.uid);
  refusals_.write(who, {{"HVDRUN_EVENT", "refused"}, {"HVDRUN_PEER", who}},
                  fmt::format("refused {}: {}", who, why));
  [[maybe_unused]] const ssize_t n =
      ::send(stream.get(), words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

// A launcher says its line at once.
Task<void> Service::meet(UniqueFd stream, PeerUser peer) {
  auto line = co_await await_first_line(loop_, stream.get(), kMaxGreetingBytes, kGreetingLimit);
  const bool is_question = line && is_control_line(*line);
  const bool is_observer = !is_served(peer.uid, geteuid());
  if (is_question && desk_) {
    co_await answer(std::move(stream), peer, std::move(*line));
  } else if (is_question) {
    begin_session(std::move(stream), fmt::format("pid {} (uid {})", peer.pid, peer.uid),
                  make_error("this agent was started without --config, and answers no questions"));
  } else if (is_observer) {
    refuse(stream, peer, "it may only ask about the node",
           fmt::format("uid {} may only ask about the node\n", peer.uid));
  } else if (!is_stopping_) {
    begin_session(std::move(stream), fmt::format("pid {} (uid {})", peer.pid, peer.uid),
                  std::move(line));
  }
}

Task<void> Service::answer(UniqueFd stream, PeerUser peer, std::string line) {
  ++desk_->counters().connections;
  Visitor visitor;
  visitor.client = fmt::format("uid {} of this machine", peer.uid);
  visitor.address = fmt::format("pid {}", peer.pid);
  visitor.local =
      is_served(peer.uid, geteuid()) ? Visitor::Local::kOwner : Visitor::Local::kObserver;
  visitor.socket = stream.get();
  const FrontAnswer answer = co_await desk_->serve(std::move(visitor), std::move(line));
  boost::asio::posix::stream_descriptor out(loop_, stream.release());
  co_await boost::asio::async_write(out, boost::asio::buffer(answer.line), kAwait);
}

void Service::begin_session(UniqueFd stream, const std::string& who, Result<std::string> line) {
  const std::uint64_t id = ++last_id_;
  const auto made = sessions_.try_emplace(id, loop_, std::move(stream), who, place_);
  boost::asio::co_spawn(loop_, made.first->second.run(std::move(line)),
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
  if (tls_) tls_->close();
  for (auto& [id, session] : sessions_) session.stop();
  if (sessions_.empty()) loop_.stop();
}

}  // namespace hvd
