#include "agent/tls_edge.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "base/log.h"
#include "base/stream_pair.h"

namespace hvd {
namespace {

using boost::asio::ip::tcp;
using namespace boost::asio::experimental::awaitable_operators;

constexpr auto kHandshakeLimit = std::chrono::seconds(10);
// Without a free descriptor the connection would be reported again and again.
constexpr auto kPause = std::chrono::milliseconds(100);

}  // namespace

Result<void> TlsEdge::start(const ServiceConfig& config) {
  if (auto loaded = reload(config); !loaded) return loaded;
  const TcpPlace& place = *config.tls;
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
  if (error) {
    return make_error("cannot listen at {} port {}: {}", place.address, place.port,
                      error.message());
  }
  boost::asio::co_spawn(loop_, accept(), boost::asio::detached);
  return {};
}

Result<void> TlsEdge::reload(const ServiceConfig& config) {
  auto context = make_tls_context(node_files_in(config.tls_folder), TlsEnd::kServer);
  if (!context) return tl::unexpected(context.error());
  context_ = std::move(*context);
  clients_ = {config.clients.begin(), config.clients.end()};
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
    const std::string address = peer.address().to_string();
    if (num_strangers_ >= kMostStrangers || strangers_[address] >= kMostOfOneAddress) {
      log(LogLevel::kWarning, "refused {}: too many connections that have not shown who they are",
          address);
      continue;  // closes it
    }
    ++num_strangers_;
    ++strangers_[address];
    boost::asio::co_spawn(loop_, meet(std::move(socket), address),
                          [this, address](const std::exception_ptr&) {
                            --num_strangers_;
                            if (--strangers_[address] == 0) strangers_.erase(address);
                          });
  }
}

Result<std::string> TlsEdge::user_of(SSL* session) const {
  const auto peer = peer_of(session);
  if (!peer) return tl::unexpected(peer.error());
  const std::string& name = peer->identity.name;
  if (peer->identity.kind != PeerIdentity::Kind::kUser) {
    return make_error("the certificate is that of the node {}, which starts no jobs", name);
  }
  if (!clients_.contains(name)) return make_error("user {} is none of the clients", name);
  return name;
}

Task<void> TlsEdge::meet(Socket socket, std::string address) {
  const auto context = context_;  // another one may come meanwhile
  TlsPump::Stream stream(std::move(socket), *context);
  boost::asio::steady_timer limit(loop_, kHandshakeLimit);
  const auto done =
      co_await (stream.async_handshake(boost::asio::ssl::stream_base::server, kAwait) ||
                limit.async_wait(kAwait));
  if (is_closed_) co_return;
  if (done.index() != 0) {
    log(LogLevel::kWarning, "refused {}: no TLS handshake in {}", address,
        format_duration(kHandshakeLimit));
    co_return;
  }
  if (const auto failed = std::get<0>(std::get<0>(done))) {
    log(LogLevel::kWarning, "refused {}: TLS: {}", address,
        handshake_failure(stream.native_handle(), failed));
    co_return;
  }
  const auto user = user_of(stream.native_handle());
  if (!user) {
    log(LogLevel::kWarning, "refused {}: {}", address, user.error().message);
    const std::string why = fmt::format("refused: {}\n", user.error().message);
    co_await (boost::asio::async_write(stream, boost::asio::buffer(why), kAwait) ||
              limit.async_wait(kAwait));
    co_await (stream.async_shutdown(kAwait) || limit.async_wait(kAwait));
    co_return;
  }
  boost::system::error_code ignored;
  stream.lowest_layer().set_option(tcp::no_delay(true), ignored);
  auto pair = make_stream_pair();
  if (!pair) {
    log(LogLevel::kError, "{} cannot be served: {}", *user, pair.error().message);
    co_return;
  }
  TlsPump::start(context, std::move(stream), std::move(pair->second));
  take_(std::move(pair->first), fmt::format("{} ({})", *user, address));
}

}  // namespace hvd
