#include "agent/tls_edge.h"

#include <netinet/tcp.h>

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "agent/front_words.h"
#include "agent/greeting.h"
#include "base/log.h"

namespace hvd {
namespace {

using boost::asio::ip::tcp;
using namespace boost::asio::experimental::awaitable_operators;

constexpr auto kHandshakeLimit = std::chrono::seconds(10);
constexpr auto kSoon = std::chrono::hours(14 * 24);
constexpr auto kGoodbyeLimit = std::chrono::seconds(1);
// Without a free descriptor the connection would be reported again and again.
constexpr auto kPause = std::chrono::milliseconds(100);

// An IPv4 address as people write it.
boost::asio::ip::address plain(const boost::asio::ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6());
}

// Of IPv6 its first 64 bits: whoever has one such address has them all.
std::string network_of(const boost::asio::ip::address& address) {
  const auto one = plain(address);
  if (!one.is_v6()) return one.to_string();
  auto bytes = one.to_v6().to_bytes();
  std::fill(bytes.begin() + bytes.size() / 2, bytes.end(), 0);
  return boost::asio::ip::address_v6(bytes).to_string();
}

// A host that has gone without a word is noticed within half a minute, also by who only waits.
void watch_for_dead_peer(int socket) {
  const auto set = [socket](int level, int option, int value) {
    setsockopt(socket, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

}  // namespace

class TlsEdge::Stranger {
 public:
  // `place` is what it is counted by.
  Stranger(TlsEdge& edge, std::string address, std::string place)
      : edge_(edge), address_(std::move(address)), place_(std::move(place)) {
    at_ = edge_.oldest_first_.insert(edge_.oldest_first_.end(), this);
    ++edge_.strangers_[place_];
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  ~Stranger() {
    edge_.oldest_first_.erase(at_);
    if (--edge_.strangers_[place_] == 0) edge_.strangers_.erase(place_);
  }
  // Its connection, for as long as it is a stranger's.
  void hold(Socket* socket) { socket_ = socket; }
  void drop() const {
    boost::system::error_code ignored;
    if (socket_ != nullptr) socket_->close(ignored);
  }
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  TlsEdge& edge_;
  const std::string address_;
  const std::string place_;
  Socket* socket_ = nullptr;
  std::list<Stranger*>::iterator at_;
};

void TlsEdge::drop_oldest() {
  Stranger* const oldest = oldest_first_.front();
  refuse(oldest->address(),
         "too many connections that have not shown who they are; the oldest goes");
  // It leaves the list when its coroutine ends; until then it is not the oldest any more.
  oldest_first_.splice(oldest_first_.end(), oldest_first_, oldest_first_.begin());
  oldest->drop();
}

Result<void> TlsEdge::start(const ServiceConfig& config, UniqueFd listening) {
  if (auto loaded = reload(config); !loaded) return loaded;
  if (listening.is_valid()) {
    sockaddr_storage at{};
    socklen_t size = sizeof at;
    boost::system::error_code error;
    if (getsockname(listening.get(), reinterpret_cast<sockaddr*>(&at), &size) != 0 ||
        (at.ss_family != AF_INET && at.ss_family != AF_INET6)) {
      return make_error("the socket that the service manager has passed is no TCP socket");
    }
    acceptor_.assign(at.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), listening.release(), error);
    if (error) return make_error("the passed socket cannot be used: {}", error.message());
  } else if (auto listens = listen(*config.tls); !listens) {
    return listens;
  }
  boost::asio::co_spawn(loop_, accept(), boost::asio::detached);
  return {};
}

Result<void> TlsEdge::listen(const TcpPlace& place) {
  boost::system::error_code error;
  const tcp::endpoint at(boost::asio::ip::make_address(place.address, error), place.port);
  if (!error) acceptor_.open(at.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  // [::] takes IPv4 as well.
  if (!error && at.address().is_v6()) {
    acceptor_.set_option(boost::asio::ip::v6_only(false), error);
  }
  if (!error) acceptor_.bind(at, error);
  if (!error) acceptor_.listen(tcp::acceptor::max_listen_connections, error);
  if (!error) return {};
  return make_error("cannot listen at {} port {}: {}", place.address, place.port, error.message());
}

Result<void> TlsEdge::reload(const ServiceConfig& config) {
  auto context = make_tls_context(node_files_in(config.tls_folder), TlsEnd::kServer);
  if (!context) return tl::unexpected(context.error());
  context_ = std::move(*context);
  const std::chrono::seconds left = time_left(*context_);
  desk_.counters().certificate_until = epoch_seconds() + left.count();
  if (left < kSoon) {
    log(LogLevel::kWarning, "the certificate in {} ends in {}; hvdctl ca renew makes another",
        config.tls_folder, format_duration(left));
  }
  clients_ = config.admins;
  for (const auto& [name, rule] : config.clients) clients_.insert(name);
  return {};
}

void TlsEdge::close() {
  is_closed_ = true;
  boost::system::error_code ignored;
  acceptor_.close(ignored);
}

Task<void> TlsEdge::accept() {
  boost::asio::steady_timer pause(loop_);
  while (!is_closed_) {
    auto [error, socket] = co_await acceptor_.async_accept(kAwait);
    if (is_closed_) co_return;
    if (error) {
      log(LogLevel::kError, "no connection can be taken: {}", error.message());
      pause.expires_after(kPause);
      co_await pause.async_wait(kAwait);
      continue;
    }
    boost::system::error_code gone;
    const auto peer = socket.remote_endpoint(gone);
    if (gone) continue;
    const std::string address = plain(peer.address()).to_string();
    ++desk_.counters().connections;
    std::string place = network_of(peer.address());
    const auto of_place = strangers_.find(place);
    if (of_place != strangers_.end() && of_place->second >= kMostOfOneAddress) {
      refuse(address, "too many connections that have not shown who they are");
      continue;  // closes it
    }
    if (oldest_first_.size() >= kMostStrangers) drop_oldest();
    boost::asio::co_spawn(
        loop_,
        meet(std::move(socket), std::make_unique<Stranger>(*this, address, std::move(place))),
        boost::asio::detached);
  }
}

void TlsEdge::refuse(const std::string& address, const std::string& why) {
  ++desk_.counters().connections_refused;
  refusals_.write(address, {{"HVDRUN_EVENT", "refused"}, {"HVDRUN_PEER", address}},
                  fmt::format("refused {}: {}", address, why));
}

Result<std::string> TlsEdge::user_of(SSL* session) const {
  const auto peer = peer_of(session);
  if (!peer) return tl::unexpected(peer.error());
  const std::string& name = peer->identity.name;
  if (peer->identity.kind != PeerIdentity::Kind::kUser) {
    return make_error("the certificate is that of the node {}, which starts no jobs", name);
  }
  if (!clients_.contains(name)) {
    return make_error("user {} is none of the clients (clients: in the agent's configuration)",
                      name);
  }
  return name;
}

Task<void> TlsEdge::meet(Socket socket, std::unique_ptr<Stranger> stranger) {
  const auto context = context_;  // another one may come meanwhile
  const std::string address = stranger->address();
  TlsPump::Stream stream(std::move(socket), *context);
  stranger->hold(&stream.next_layer());
  boost::asio::steady_timer limit(loop_, kHandshakeLimit);
  const auto done =
      co_await (stream.async_handshake(boost::asio::ssl::stream_base::server, kAwait) ||
                limit.async_wait(kAwait));
  // Or it was dropped.
  if (is_closed_ || !stream.lowest_layer().is_open()) co_return;
  if (done.index() != 0) {
    co_return refuse(address, "no TLS handshake in " + format_duration(kHandshakeLimit));
  }
  if (const auto failed = std::get<0>(std::get<0>(done))) {
    co_return refuse(address, "TLS: " + handshake_failure(stream.native_handle(), failed));
  }
  const auto user = user_of(stream.native_handle());
  if (!user) {
    refuse(address, user.error().message);
    const std::string why = fmt::format("refused: {}\n", user.error().message);
    co_await (boost::asio::async_write(stream, boost::asio::buffer(why), kAwait) ||
              limit.async_wait(kAwait));
    co_await (stream.async_shutdown(kAwait) || limit.async_wait(kAwait));
    co_return;
  }
  boost::system::error_code ignored;
  stream.lowest_layer().set_option(tcp::no_delay(true), ignored);
  watch_for_dead_peer(stream.lowest_layer().native_handle());
  Visitor visitor;
  visitor.client = *user;
  visitor.address = address;
  visitor.socket = stream.lowest_layer().native_handle();
  visitor.say = [&stream](std::string text) -> Task<void> {
    co_await boost::asio::async_write(stream, boost::asio::buffer(text), kAwait);
  };
  std::string line;
  const auto said =
      co_await (boost::asio::async_read_until(
                    stream, boost::asio::dynamic_buffer(line, kMaxGreetingBytes), '\n', kAwait) ||
                limit.async_wait(kAwait));
  if (said.index() != 0) co_return refuse(address, "it has said nothing");
  const auto [error, size] = std::get<0>(said);
  // More than the line would be bytes that nobody sends before our answer.
  if (error || size != line.size()) co_return refuse(address, "what came is no line of an hvdrun");
  line.pop_back();
  if (num_served_ >= kMostServed) co_return refuse(address, "too many are being answered");
  stranger.reset();
  ++num_served_;
  FrontAnswer answer = co_await desk_.serve(std::move(visitor), std::move(line));
  --num_served_;
  const auto [failed, written] =
      co_await boost::asio::async_write(stream, boost::asio::buffer(answer.line), kAwait);
  if (failed) co_return;
  if (answer.carried.is_valid()) {
    TlsPump::start(context, std::move(stream), std::move(answer.carried));
    co_return;
  }
  limit.expires_after(kGoodbyeLimit);
  co_await (stream.async_shutdown(kAwait) || limit.async_wait(kAwait));
}

}  // namespace hvd
