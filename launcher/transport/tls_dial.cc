#include "launcher/transport/tls_dial.h"

#include <netinet/tcp.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <utility>

#include "launcher/transport/name_lookup.h"

namespace hvd {
namespace {

using boost::asio::ip::tcp;
using namespace boost::asio::experimental::awaitable_operators;

class Dialler {
 public:
  explicit Dialler(TlsDial dial) : dial_(std::move(dial)) {}

  Task<Result<tcp::socket>> connect() {
    enter(Phase::kResolve);
    tcp::socket socket(dial_.loop);
    const OpenList::Entry entry(dial_.opens, [&socket] {
      boost::system::error_code ignored;
      socket.close(ignored);
    });
    auto found =
        co_await look_up_name(dial_.loop, dial_.opens, dial_.host, dial_.port, dial_.deadline);
    if (!found) co_return tl::unexpected(timed_out("the name's resolution"));
    if (!*found) {
      co_return tl::unexpected(found->error().within("the name cannot be resolved"));
    }
    enter(Phase::kConnect);
    boost::asio::steady_timer limit(dial_.loop, dial_.deadline);
    const auto connected =
        co_await (boost::asio::async_connect(socket, **found, kAwait) || limit.async_wait(kAwait));
    if (connected.index() != 0) co_return tl::unexpected(timed_out("the connection"));
    if (const auto failed = std::get<0>(std::get<0>(connected))) {
      co_return make_error(
          "TCP port {}: {}; look whether hvd-agent serves there (systemctl status hvd-agent)",
          dial_.port, failed.message());
    }
    boost::system::error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    const auto lease = std::chrono::duration_cast<std::chrono::milliseconds>(dial_.lease);
    const auto unheard = static_cast<unsigned>(lease.count());
    setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &unheard, sizeof unheard);
    co_return std::move(socket);
  }

  Task<Result<TlsPump::Stream>> shake_hands(tcp::socket socket) {
    enter(Phase::kAuthenticate);
    TlsPump::Stream stream(std::move(socket), *dial_.context);
    boost::asio::steady_timer limit(dial_.loop, dial_.deadline);
    const OpenList::Entry entry(dial_.opens, [&stream] {
      boost::system::error_code ignored;
      stream.lowest_layer().close(ignored);
    });
    const auto done =
        co_await (stream.async_handshake(boost::asio::ssl::stream_base::client, kAwait) ||
                  limit.async_wait(kAwait));
    if (done.index() != 0) co_return tl::unexpected(timed_out("the TLS handshake"));
    if (const auto failed = std::get<0>(std::get<0>(done))) {
      co_return make_error("TLS: {}", handshake_failure(stream.native_handle(), failed));
    }
    const auto peer = peer_of(stream.native_handle());
    if (!peer) co_return tl::unexpected(peer.error().within("TLS"));
    if (auto fits = check_node(*peer); !fits) co_return tl::unexpected(fits.error().within("TLS"));
    co_return std::move(stream);
  }

  [[nodiscard]] Error failure(const Error& error) const {
    if (dial_.opens.is_aborted()) return {fmt::format("{}: stopped", dial_.host)};
    return error.within(dial_.host);
  }

 private:
  void enter(Phase phase) const {
    if (dial_.on_phase) dial_.on_phase(phase);
  }

  [[nodiscard]] Error timed_out(std::string_view what) const {
    return {fmt::format(
                "{} took longer than {}; look whether hvd-agent serves there at TCP port {}, and "
                "whether a firewall lets it through",
                what, format_duration(dial_.deadline - start_), dial_.port),
            ExitCode::kTimeout};
  }

  // The name in the certificate must be the one that the user wrote.
  [[nodiscard]] Result<void> check_node(const TlsPeer& peer) const {
    if (peer.identity.kind != PeerIdentity::Kind::kNode) {
      return make_error("its certificate is {}'s, no node's", peer.identity.name);
    }
    if (peer.identity.name == dial_.host || std::find(peer.addresses.begin(), peer.addresses.end(),
                                                      dial_.host) != peer.addresses.end()) {
      return {};
    }
    return make_error(
        "its certificate is that of {}; use that name, or issue one with --address {}",
        peer.identity.name, dial_.host);
  }

  const TlsDial dial_;
  const SteadyTime start_ = std::chrono::steady_clock::now();
};

}  // namespace

Task<Result<TlsPump::Stream>> dial_tls(TlsDial dial) {
  Dialler dialler(std::move(dial));
  auto socket = co_await dialler.connect();
  if (!socket) co_return tl::unexpected(dialler.failure(socket.error()));
  auto stream = co_await dialler.shake_hands(std::move(*socket));
  if (!stream) co_return tl::unexpected(dialler.failure(stream.error()));
  co_return std::move(*stream);
}

}  // namespace hvd
