// The transport `ssh`: pool threads log in, then the pump carries the session, and the boot
// dialogue runs on the loop over the socket pair as for any other transport.
#include <sys/socket.h>

#include <memory>
#include <optional>

#include "base/stream_pair.h"
#include "launcher/transport/boot_dialogue.h"
#include "launcher/transport/boot_script.h"
#include "launcher/transport/open_list.h"
#include "launcher/transport/pump.h"
#include "launcher/transport/ssh_job.h"
#include "launcher/transport/ssh_login.h"
#include "launcher/transport/transport.h"
#include "launcher/transport/worker_pool.h"

namespace hvd {
namespace {

constexpr std::size_t kMaxThreads = 32;

// What all log-ins of a transport share; a thread that is held up may outlive the transport.
struct SharedLogin {
  SshLoginConfig config;
  SshKeys keys;
};

// Filled by a pool thread, taken by the loop after its post.
struct LoginOutcome {
  Result<std::unique_ptr<SshSession>> session = make_error("stopped");
};

class SshConnection final : public Connection {
 public:
  SshConnection(Pump& pump, std::uint64_t id, UniqueFd stream, std::shared_ptr<SideText> side_text)
      : pump_(pump), id_(id), stream_(std::move(stream)), side_text_(std::move(side_text)) {}
  ~SshConnection() override {
    stream_.reset();
    pump_.drop(id_);
  }

  UniqueFd take_stream() override { return std::move(stream_); }
  [[nodiscard]] std::string diagnostics() const override { return noise_ + side_text_->text(); }
  [[nodiscard]] std::string agent_path() const override { return agent_path_; }

  [[nodiscard]] int stream() const { return stream_.get(); }
  [[nodiscard]] const SideText& side_text() const { return *side_text_; }
  void set_boot(const BootReport& report) {
    noise_ = report.noise;
    agent_path_ = report.folder;
  }

 private:
  Pump& pump_;  // not owned, outlives this
  const std::uint64_t id_;
  UniqueFd stream_;
  const std::shared_ptr<SideText> side_text_;  // shared with the pump's thread
  std::string noise_;
  std::string agent_path_;
};

using Opened = Result<std::unique_ptr<Connection>>;

class SshTransport final : public Transport {
 public:
  SshTransport(Loop& loop, SshTransportConfig config)
      : loop_(loop),
        shared_(std::make_shared<SharedLogin>()),
        upload_(std::move(config.agent)),
        pool_(kMaxThreads) {
    shared_->config = {config.config_file, config.identity_file, config.port,
                       config.accept_new_host_keys, config.lease};
  }
  ~SshTransport() override { opens_.abort_all(); }

  void abort() override { opens_.abort_all(); }

  Task<Opened> open(OpenRequest request) override {
    const SteadyTime start = std::chrono::steady_clock::now();
    const std::string marker = make_marker();
    auto session = co_await log_in_on_pool(request, marker, start);
    if (!session) co_return tl::unexpected(session.error());
    auto connection = carry(std::move(*session));
    if (!connection) co_return tl::unexpected(connection.error().within(request.target.host));
    co_return co_await boot(request, marker, start, std::move(*connection));
  }

 private:
  Task<Result<std::unique_ptr<SshSession>>> log_in_on_pool(const OpenRequest& request,
                                                           const std::string& marker,
                                                           SteadyTime start) {
    const std::string& host = request.target.host;
    if (opens_.is_aborted()) co_return make_error("{}: stopped", host);
    auto job = std::make_shared<SshJob>(loop_, request);
    auto outcome = std::make_shared<LoginOutcome>();
    Event is_done(loop_);
    const OpenList::Entry entry(opens_, [&] {
      job->cancel();
      is_done.set();
    });
    const std::string command =
        login_shell_command(boot_script(upload_.image(), marker, request.agent_words));
    pool_.submit([job, outcome, shared = shared_, command, &is_done] {
      if (job->is_over()) return;
      outcome->session = log_in(*job, shared->config, shared->keys, command);
      // Not run after cancel(), so the event still lives when it is.
      job->post([&is_done] { is_done.set(); });
    });
    const bool is_in_time = co_await is_done.wait_until(request.deadline);
    job->cancel();
    if (opens_.is_aborted()) co_return make_error("{}: stopped", host);
    const bool has_result = is_in_time && !is_timeout(outcome->session);
    if (!has_result) {
      co_return make_error(ExitCode::kTimeout, "{}: no answer in {} ({})", host,
                           format_duration(std::chrono::steady_clock::now() - start),
                           phase_name(job->phase()));
    }
    if (!outcome->session) co_return tl::unexpected(outcome->session.error().within(host));
    co_return std::move(outcome->session);
  }

  static bool is_timeout(const Result<std::unique_ptr<SshSession>>& session) {
    return !session && session.error().code == ExitCode::kTimeout;
  }

  Result<std::unique_ptr<SshConnection>> carry(std::unique_ptr<SshSession> session) {
    auto pair = make_stream_pair();
    if (!pair) return tl::unexpected(pair.error());
    auto side_text = std::make_shared<SideText>();
    const std::uint64_t id = pump_.add({std::move(session), std::move(pair->second), side_text});
    return std::make_unique<SshConnection>(pump_, id, std::move(pair->first), side_text);
  }

  Task<Opened> boot(const OpenRequest& request, const std::string& marker, SteadyTime start,
                    std::unique_ptr<SshConnection> connection) {
    const OpenList::Entry entry(opens_, [&] { ::shutdown(connection->stream(), SHUT_RDWR); });
    BootRequest boot_request;
    boot_request.stream = connection->stream();
    boot_request.marker = marker;
    boot_request.deadline = request.deadline;
    boot_request.on_phase = request.on_phase;
    const BootReport report = co_await run_boot_dialogue(loop_, upload_, std::move(boot_request));
    if (report.state == BootReport::State::kReady) {
      connection->set_boot(report);
      co_return std::move(connection);
    }
    if (opens_.is_aborted()) co_return make_error("{}: stopped", request.target.host);
    const std::string ending = connection->side_text().ending();
    const std::string error_text = connection->side_text().text();
    Error error = explain_boot_failure(
        report, {request.target.host, ending, error_text, request.deadline - start});
    co_return tl::unexpected(std::move(error));
  }

  Loop& loop_;
  const std::shared_ptr<SharedLogin> shared_;  // shared with the pool's threads
  AgentUpload upload_;
  OpenList opens_;
  Pump pump_;
  WorkerPool pool_;
};

}  // namespace

std::unique_ptr<Transport> make_ssh_transport(Loop& loop, SshTransportConfig config) {
  return std::make_unique<SshTransport>(loop, std::move(config));
}

}  // namespace hvd
