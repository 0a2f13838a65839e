// The transport `tls`: TCP to an agent that serves at its node, TLS with certificates of both ends,
// then the line that an agent that runs already is told.
#include <netinet/tcp.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "base/stream_pair.h"
#include "launcher/transport/boot_dialogue.h"
#include "launcher/transport/boot_script.h"
#include "launcher/transport/open_list.h"
#include "launcher/transport/transport.h"
#include "proto/tls_pump.h"

namespace hvd {
namespace {

using boost::asio::ip::tcp;
using Opened = Result<std::unique_ptr<Connection>>;
using namespace boost::asio::experimental::awaitable_operators;

class TlsConnection final : public Connection {
 public:
  TlsConnection(std::shared_ptr<TlsPump> pump, UniqueFd stream)
      : pump_(std::move(pump)), stream_(std::move(stream)) {}

  UniqueFd take_stream() override { return std::move(stream_); }
  [[nodiscard]] std::string diagnostics() const override { return pump_->why(); }
  [[nodiscard]] std::string agent_path() const override { return {}; }

 private:
  const std::shared_ptr<TlsPump> pump_;  // ends with the stream
  UniqueFd stream_;
};

// A pump, and the end of its pair that is the connection's.
struct Secured {
  std::shared_ptr<TlsPump> pump;
  UniqueFd stream;
};

// What one open() has in hand.
struct Attempt {
  const OpenRequest& request;
  tcp::socket socket;
  SteadyTime start = std::chrono::steady_clock::now();
};

class TlsTransport final : public Transport {
 public:
  TlsTransport(Loop& loop, TlsTransportConfig config,
               Result<std::shared_ptr<boost::asio::ssl::context>> context)
      : loop_(loop), config_(std::move(config)), context_(std::move(context)), upload_({}) {}

  void abort() override { opens_.abort_all(); }

  Task<Opened> open(OpenRequest request) override {
    const std::string& host = request.target.host;
    if (!context_) co_return tl::unexpected(context_.error());
    Attempt attempt{request, tcp::socket(loop_)};
    const OpenList::Entry entry(opens_, [&attempt] {
      boost::system::error_code ignored;
      attempt.socket.close(ignored);
    });
    if (auto reached = co_await connect(attempt); !reached) {
      if (opens_.is_aborted()) co_return make_error("{}: stopped", host);
      co_return tl::unexpected(reached.error().within(host));
    }
    auto secured = co_await shake_hands(attempt);
    if (!secured) {
      if (opens_.is_aborted()) co_return make_error("{}: stopped", host);
      co_return tl::unexpected(secured.error().within(host));
    }
    co_return co_await greet(attempt, std::move(*secured));
  }

 private:
  void enter(const Attempt& attempt, Phase phase) const {
    if (attempt.request.on_phase) attempt.request.on_phase(phase);
  }

  [[nodiscard]] Error timed_out(const Attempt& attempt, std::string_view what) const {
    return {fmt::format(
                "{} took longer than {}; look whether hvd-agent serves there at TCP port {}, and "
                "whether a firewall lets it through",
                what, format_duration(attempt.request.deadline - attempt.start), port_of(attempt)),
            ExitCode::kTimeout};
  }

  [[nodiscard]] std::uint16_t port_of(const Attempt& attempt) const {
    return attempt.request.target.port != 0 ? attempt.request.target.port : config_.port;
  }

  Task<Result<void>> connect(Attempt& attempt) {
    enter(attempt, Phase::kResolve);
    tcp::resolver resolver(loop_);
    boost::asio::steady_timer limit(loop_, attempt.request.deadline);
    const auto found = co_await (resolver.async_resolve(attempt.request.target.host,
                                                        std::to_string(port_of(attempt)), kAwait) ||
                                 limit.async_wait(kAwait));
    if (found.index() != 0) co_return tl::unexpected(timed_out(attempt, "the name's resolution"));
    const auto& [error, addresses] = std::get<0>(found);
    if (error) co_return make_error("the name cannot be resolved: {}", error.message());
    enter(attempt, Phase::kConnect);
    const auto connected = co_await (
        boost::asio::async_connect(attempt.socket, addresses, kAwait) || limit.async_wait(kAwait));
    if (connected.index() != 0) co_return tl::unexpected(timed_out(attempt, "the connection"));
    if (const auto failed = std::get<0>(std::get<0>(connected))) {
      co_return make_error(
          "TCP port {}: {}; look whether hvd-agent serves there (systemctl status hvd-agent)",
          port_of(attempt), failed.message());
    }
    boost::system::error_code ignored;
    attempt.socket.set_option(tcp::no_delay(true), ignored);
    const auto lease = std::chrono::duration_cast<std::chrono::milliseconds>(config_.lease);
    const auto unheard = static_cast<unsigned>(lease.count());
    setsockopt(attempt.socket.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &unheard,
               sizeof unheard);
    co_return Result<void>();
  }

  // The name in the certificate must be the one that the user wrote.
  [[nodiscard]] static Result<void> check_node(const std::string& host, const TlsPeer& peer) {
    if (peer.identity.kind != PeerIdentity::Kind::kNode) {
      return make_error("its certificate is {}'s, no node's", peer.identity.name);
    }
    if (peer.identity.name == host ||
        std::find(peer.addresses.begin(), peer.addresses.end(), host) != peer.addresses.end()) {
      return {};
    }
    return make_error(
        "its certificate is that of {}; use that name, or issue one with --address {}",
        peer.identity.name, host);
  }

  Task<Result<Secured>> shake_hands(Attempt& attempt) {
    enter(attempt, Phase::kAuthenticate);
    TlsPump::Stream stream(std::move(attempt.socket), **context_);
    boost::asio::steady_timer limit(loop_, attempt.request.deadline);
    const OpenList::Entry entry(opens_, [&stream] {
      boost::system::error_code ignored;
      stream.lowest_layer().close(ignored);
    });
    const auto done =
        co_await (stream.async_handshake(boost::asio::ssl::stream_base::client, kAwait) ||
                  limit.async_wait(kAwait));
    if (done.index() != 0) co_return tl::unexpected(timed_out(attempt, "the TLS handshake"));
    if (const auto failed = std::get<0>(std::get<0>(done))) {
      co_return make_error("TLS: {}", handshake_failure(stream.native_handle(), failed));
    }
    const auto peer = peer_of(stream.native_handle());
    if (!peer) co_return tl::unexpected(peer.error().within("TLS"));
    if (auto fits = check_node(attempt.request.target.host, *peer); !fits) {
      co_return tl::unexpected(fits.error().within("TLS"));
    }
    auto pair = make_stream_pair();
    if (!pair) co_return tl::unexpected(pair.error());
    co_return Secured{TlsPump::start(*context_, std::move(stream), std::move(pair->second)),
                      std::move(pair->first)};
  }

  // A refusal of our certificate comes only now: with TLS 1.3 our side of the handshake is over
  // first.
  Task<Opened> greet(const Attempt& attempt, Secured secured) {
    const OpenRequest& request = attempt.request;
    const OpenList::Entry entry(opens_, [&secured] { secured.pump->close(); });
    BootRequest boot;
    boot.stream = secured.stream.get();
    boot.marker = make_marker();
    boot.first_bytes = agent_greeting(boot.marker, request.agent_words);
    boot.deadline = request.deadline;
    boot.on_phase = request.on_phase;
    enter(attempt, Phase::kStartAgent);
    const BootReport report = co_await run_boot_dialogue(loop_, upload_, std::move(boot));
    if (report.state == BootReport::State::kReady) {
      co_return std::make_unique<TlsConnection>(std::move(secured.pump), std::move(secured.stream));
    }
    secured.pump->close();
    if (opens_.is_aborted()) co_return make_error("{}: stopped", request.target.host);
    const std::string& why = secured.pump->why();
    if (secured.pump->has_alert()) {
      co_return make_error("{}: the agent refused our certificate {}: {}", request.target.host,
                           config_.files.certificate, why);
    }
    co_return tl::unexpected(explain_boot_failure(
        report,
        {request.target.host, why, "", request.deadline - attempt.start, Phase::kStartAgent}));
  }

  Loop& loop_;
  const TlsTransportConfig config_;
  const Result<std::shared_ptr<boost::asio::ssl::context>> context_;
  AgentUpload upload_;  // never used: an agent that serves is there
  OpenList opens_;
};

}  // namespace

std::unique_ptr<Transport> make_tls_transport(Loop& loop, TlsTransportConfig config) {
  auto context = make_tls_context(config.files, TlsEnd::kClient);
  return std::make_unique<TlsTransport>(loop, std::move(config), std::move(context));
}

}  // namespace hvd
