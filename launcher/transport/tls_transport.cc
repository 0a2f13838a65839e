// The transport `tls`: TCP to an agent that serves at its node, TLS with certificates of both ends,
// then a line that says what is wanted. A job's connection is one stream whatever becomes of single
// connections: one that breaks is dialled again, within the lease.
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/first_line.h"
#include "base/log.h"
#include "base/random_bytes.h"
#include "base/shown.h"
#include "base/stream_pair.h"
#include "launcher/transport/boot_script.h"
#include "launcher/transport/claim_order.h"
#include "launcher/transport/open_list.h"
#include "launcher/transport/tls_dial.h"
#include "launcher/transport/tls_words.h"
#include "launcher/transport/transport.h"
#include "proto/resumable_stream.h"
#include "proto/tls_pump.h"

namespace hvd {
namespace {

using Opened = Result<std::unique_ptr<Connection>>;
using std::chrono::steady_clock;

constexpr std::size_t kMostAnswer = 4096;
constexpr std::size_t kKeyBytes = 32;
// A certificate that ends so soon is told of.
constexpr auto kSoon = std::chrono::hours(7 * 24);
constexpr auto kDialAgain = std::chrono::milliseconds(100);
constexpr auto kMostPause = std::chrono::milliseconds(1000);
// A connection on which nothing comes for this part of the lease is given up for a new one, so that
// the new one has time; heartbeats come much more often.
constexpr int kPatienceOfLease = 3;

// A pump, and the end of its pair that is ours.
struct Secured {
  std::shared_ptr<TlsPump> pump;
  UniqueFd stream;
};

// What all connections of a transport need. It outlives the transport while one of them lives.
struct Dialler {
  Loop& loop;
  TlsTransportConfig config;
  std::shared_ptr<boost::asio::ssl::context> context;

  [[nodiscard]] Task<Result<Secured>> dial(const Target& target, SteadyTime deadline,
                                           OpenList& opens,
                                           std::function<void(Phase)> on_phase = {}) const {
    TlsDial dial{loop,
                 opens,
                 context,
                 target.host,
                 target.port != 0 ? target.port : config.port,
                 deadline,
                 config.lease,
                 std::move(on_phase)};
    auto stream = co_await dial_tls(std::move(dial));
    if (!stream) co_return tl::unexpected(stream.error());
    auto pair = make_stream_pair();
    if (!pair) co_return tl::unexpected(pair.error().within(target.host));
    co_return Secured{TlsPump::start(context, std::move(*stream), std::move(pair->second)),
                      std::move(pair->first)};
  }

  // The next line that the agent says. A refusal of our certificate comes only here: with TLS 1.3
  // our side of the handshake is over first.
  [[nodiscard]] Task<Result<TlsAnswer>> hear(const Secured& secured, const std::string& host,
                                             std::string_view marker, SteadyTime deadline) const {
    const auto line = co_await await_first_line(loop, secured.stream.get(), kMostAnswer,
                                                deadline - steady_clock::now());
    if (line) {
      TlsAnswer answer = parse_tls_answer(*line, marker);
      if (answer.kind != TlsAnswer::Kind::kUnknown) co_return answer;
      co_return make_error("{}: it said: {}", host, shown(answer.text));
    }
    const std::string& why = secured.pump->why();
    if (secured.pump->has_alert()) {
      co_return make_error("{}: the agent refused our certificate {}: {}", host,
                           config.files.certificate, why);
    }
    if (steady_clock::now() >= deadline) {
      co_return make_error(ExitCode::kTimeout, "{}: the agent did not answer in time", host);
    }
    co_return make_error("{}: the agent ended the connection{}{}", host, why.empty() ? "" : ": ",
                         why);
  }

  static void say(const Secured& secured, const std::string& line) {
    [[maybe_unused]] const ssize_t n =
        ::send(secured.stream.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
};

// A job's stream through the connections that carry it.
class JobStream : public std::enable_shared_from_this<JobStream> {
 public:
  JobStream(Dialler dialler, Target target, std::vector<std::string> resume_words)
      : dialler_(std::move(dialler)),
        target_(std::move(target)),
        resume_words_(std::move(resume_words)) {}

  [[nodiscard]] Result<UniqueFd> start(UniqueFd connection) {
    auto pair = make_stream_pair();
    if (!pair) return tl::unexpected(pair.error());
    ResumableStream::Handlers handlers;
    handlers.on_broken = [weak = weak_from_this()](const std::string& why) {
      const auto self = weak.lock();
      if (!self) return;
      boost::asio::co_spawn(self->dialler_.loop, self->dial_again(why),
                            [self](const std::exception_ptr&) {});
    };
    handlers.on_over = [weak = weak_from_this()](const std::string& why) {
      const auto self = weak.lock();
      if (self && !why.empty()) self->why_ = why;
    };
    stream_ = ResumableStream::start(dialler_.loop, std::move(pair->second),
                                     dialler_.config.lease / kPatienceOfLease, std::move(handlers));
    stream_->attach(std::move(connection));
    return std::move(pair->first);
  }

  // Without a word to the agent; it has had its goodbye, or ends by the lease.
  void close() {
    opens_.abort_all();
    stream_->close();
  }

  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  // An agent may take connections and say nothing. Once that has lasted for the lease, the job has
  // lost the node and said so; what the agent answers may still be told, but not that it is asked.
  Task<void> dial_again(std::string why) {
    const SteadyTime began = steady_clock::now();
    const SteadyTime end = began + dialler_.config.lease;
    const bool is_told = began - stream_->last_heard() < dialler_.config.lease;
    if (is_told) {
      log(LogLevel::kInfo, "{}: the connection has broken ({}); dialling again", target_.host, why);
    }
    Nanos pause = kDialAgain;
    boost::asio::steady_timer timer(dialler_.loop);
    while (!stream_->is_over() && steady_clock::now() < end) {
      auto connection = co_await connect_again(
          std::min(end, steady_clock::now() + dialler_.config.lease / kPatienceOfLease));
      if (stream_->is_over()) co_return;
      if (connection) {
        if (is_told) {
          log(LogLevel::kInfo, "{}: connected again after {}", target_.host,
              format_duration(steady_clock::now() - began));
        }
        co_return stream_->attach(std::move(*connection));
      }
      why = connection.error().message;
      if (!connection.error().may_retry) co_return stream_->fail(why);
      if (is_told) log(LogLevel::kDebug, "{}", why);
      timer.expires_after(pause);
      co_await timer.async_wait(kAwait);
      pause = std::min<Nanos>(pause * 2, kMostPause);
    }
    stream_->fail("the connection broke and could not be made again: " + why);
  }

  // What the agent itself says is final; whether it can be reached is not.
  Task<Result<UniqueFd>> connect_again(SteadyTime deadline) {
    auto secured = co_await dialler_.dial(target_, deadline, opens_);
    if (!secured) {
      Error error = secured.error();
      error.may_retry = true;
      co_return tl::unexpected(error);
    }
    const std::string marker = make_marker();
    Dialler::say(*secured, agent_greeting(marker, resume_words_));
    auto answer = co_await dialler_.hear(*secured, target_.host, marker, deadline);
    if (answer && answer->kind == TlsAnswer::Kind::kReady) co_return std::move(secured->stream);
    secured->pump->close();
    if (answer) co_return make_error("{}: {}", target_.host, shown(answer->text));
    Error error = answer.error();
    error.may_retry = true;
    co_return tl::unexpected(error);
  }

  const Dialler dialler_;
  const Target target_;
  const std::vector<std::string> resume_words_;
  OpenList opens_;
  std::shared_ptr<ResumableStream> stream_;
  std::string why_;
};

class JobConnection final : public Connection {
 public:
  JobConnection(std::shared_ptr<JobStream> stream, UniqueFd inner)
      : stream_(std::move(stream)), inner_(std::move(inner)) {}
  ~JobConnection() override { stream_->close(); }

  UniqueFd take_stream() override { return std::move(inner_); }
  [[nodiscard]] std::string diagnostics() const override { return stream_->why(); }
  [[nodiscard]] std::string agent_path() const override { return {}; }

 private:
  const std::shared_ptr<JobStream> stream_;
  UniqueFd inner_;
};

// Of a reap, which has no second connection.
class PlainConnection final : public Connection {
 public:
  explicit PlainConnection(Secured secured) : secured_(std::move(secured)) {}

  UniqueFd take_stream() override { return std::move(secured_.stream); }
  [[nodiscard]] std::string diagnostics() const override { return secured_.pump->why(); }
  [[nodiscard]] std::string agent_path() const override { return {}; }

 private:
  Secured secured_;
};

bool is_job(const OpenRequest& request) { return request.agent_words.front() == "--stdio"; }

class TlsTransport final : public Transport {
 public:
  TlsTransport(Loop& loop, TlsTransportConfig config,
               Result<std::shared_ptr<boost::asio::ssl::context>> context)
      : loop_(loop), config_(std::move(config)), context_(std::move(context)), order_(loop) {}

  void abort() override { opens_.abort_all(); }

  Task<Opened> open(OpenRequest request) override {
    if (!context_) co_return tl::unexpected(context_.error());
    const std::string& host = request.target.host;
    const Dialler dialler{loop_, config_, *context_};
    ClaimOrder::Turn turn(order_, host);
    auto secured = co_await dialler.dial(
        request.target, std::min(request.connect_by, request.deadline), opens_, request.on_phase);
    if (!secured) co_return tl::unexpected(secured.error());
    const OpenList::Entry entry(opens_, [&secured] { secured->pump->close(); });
    if (request.on_phase) request.on_phase(Phase::kStartAgent);
    std::vector<std::string> words = request.agent_words;
    std::vector<std::string> resume_words;
    if (is_job(request)) {
      const auto key = random_bytes(kKeyBytes);
      if (!key) co_return tl::unexpected(key.error());
      words.front() = "job";
      words.insert(words.end(), {"--key", hex_of(*key)});
      resume_words = {"resume"};
      resume_words.insert(resume_words.end(), request.agent_words.begin() + 1,
                          request.agent_words.begin() + 5);
      resume_words.insert(resume_words.end(), {"--key", hex_of(*key)});
      co_await turn.come();
    }
    const std::string marker = make_marker();
    Dialler::say(*secured, agent_greeting(marker, words));
    std::string waits_for;
    while (true) {
      auto answer = co_await dialler.hear(*secured, host, marker, request.deadline);
      if (opens_.is_aborted()) co_return make_error("{}: stopped", host);
      if (!answer && !waits_for.empty() && answer.error().code == ExitCode::kTimeout) {
        co_return make_error(ExitCode::kTimeout, "{}: still waiting: {}", host, waits_for);
      }
      if (!answer) co_return tl::unexpected(answer.error());
      const std::string text = shown(answer->text);
      switch (answer->kind) {
        case TlsAnswer::Kind::kReady:
          co_return made(dialler, request, std::move(*secured), std::move(resume_words));
        case TlsAnswer::Kind::kWaiting:
          if (text != waits_for) log(LogLevel::kWarning, "{}: waits: {}", host, text);
          waits_for = text;
          if (request.on_phase) request.on_phase(Phase::kTurn);
          if (steady_clock::now() < request.deadline) break;
          co_return make_error(ExitCode::kTimeout, "{}: still waiting: {}", host, text);
        case TlsAnswer::Kind::kClaimed:
          if (request.on_phase) request.on_phase(Phase::kStartAgent);
          turn.end();
          break;
        case TlsAnswer::Kind::kError:
        case TlsAnswer::Kind::kUnknown:
          secured->pump->close();
          co_return make_error("{}: {}", host, text);
      }
    }
  }

 private:
  static Opened made(const Dialler& dialler, const OpenRequest& request, Secured secured,
                     std::vector<std::string> resume_words) {
    if (!is_job(request)) return std::make_unique<PlainConnection>(std::move(secured));
    auto stream = std::make_shared<JobStream>(dialler, request.target, std::move(resume_words));
    auto inner = stream->start(std::move(secured.stream));
    if (!inner) return tl::unexpected(inner.error());
    return std::make_unique<JobConnection>(std::move(stream), std::move(*inner));
  }

  Loop& loop_;
  const TlsTransportConfig config_;
  const Result<std::shared_ptr<boost::asio::ssl::context>> context_;
  OpenList opens_;
  ClaimOrder order_;
};

}  // namespace

std::unique_ptr<Transport> make_tls_transport(Loop& loop, TlsTransportConfig config) {
  auto context = make_tls_context(config.files, TlsEnd::kClient);
  if (!context) context.error().code = ExitCode::kUsage;  // nobody has been asked yet
  if (context && time_left(**context) < kSoon) {
    log(LogLevel::kWarning, "{} ends in {}; hvdctl ca renew makes another",
        config.files.certificate, format_duration(time_left(**context)));
  }
  return std::make_unique<TlsTransport>(loop, std::move(config), std::move(context));
}

}  // namespace hvd
