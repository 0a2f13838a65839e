// The transport `tls`: TCP to an agent that serves at its node, TLS with certificates of both ends,
// then the line that an agent that runs already is told.
#include <memory>
#include <utility>

#include "base/stream_pair.h"
#include "launcher/transport/boot_dialogue.h"
#include "launcher/transport/boot_script.h"
#include "launcher/transport/open_list.h"
#include "launcher/transport/tls_dial.h"
#include "launcher/transport/transport.h"
#include "proto/tls_pump.h"

namespace hvd {
namespace {

using Opened = Result<std::unique_ptr<Connection>>;

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
  SteadyTime start = std::chrono::steady_clock::now();
};

class TlsTransport final : public Transport {
 public:
  TlsTransport(Loop& loop, TlsTransportConfig config,
               Result<std::shared_ptr<boost::asio::ssl::context>> context)
      : loop_(loop), config_(std::move(config)), context_(std::move(context)), upload_({}) {}

  void abort() override { opens_.abort_all(); }

  Task<Opened> open(OpenRequest request) override {
    if (!context_) co_return tl::unexpected(context_.error());
    const Attempt attempt{request};
    TlsDial dial{loop_,
                 opens_,
                 *context_,
                 request.target.host,
                 request.target.port != 0 ? request.target.port : config_.port,
                 request.deadline,
                 config_.lease,
                 request.on_phase};
    auto stream = co_await dial_tls(std::move(dial));
    if (!stream) co_return tl::unexpected(stream.error());
    auto secured = secure(std::move(*stream));
    if (!secured) co_return tl::unexpected(secured.error().within(request.target.host));
    co_return co_await greet(attempt, std::move(*secured));
  }

 private:
  [[nodiscard]] Result<Secured> secure(TlsPump::Stream stream) const {
    auto pair = make_stream_pair();
    if (!pair) return tl::unexpected(pair.error());
    return Secured{TlsPump::start(*context_, std::move(stream), std::move(pair->second)),
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
    if (request.on_phase) request.on_phase(Phase::kStartAgent);
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
