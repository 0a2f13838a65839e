#include "agent/job_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/signal_set.hpp>
#include <memory>
#include <utility>

#include "agent/end_signals.h"
#include "agent/job.h"
#include "agent/job_door.h"
#include "agent/shim_process.h"
#include "base/log.h"
#include "base/stream_pair.h"
#include "proto/resumable_stream.h"

namespace hvd {
namespace {

constexpr int kFailure = 1;
// A launcher that has gone while its job was being started must not keep its GPUs for long.
constexpr auto kHelloLimit = std::chrono::seconds(30);
// What is still on its way to the launcher when the job is over.
constexpr auto kFlushLimit = std::chrono::seconds(1);

// What the manager of services tells this process is not the ranks'.
EnvList ranks_environment() {
  EnvList env = take_environment();
  std::erase_if(env, [](const auto& entry) { return is_service_manager_variable(entry.first); });
  return env;
}

// From standard input, which nobody else shall have.
Result<UniqueFd> take_listener() {
  int is_listening = 0;
  socklen_t size = sizeof is_listening;
  const int failed = getsockopt(STDIN_FILENO, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size);
  if (failed != 0 || is_listening == 0) {
    return make_error("hvd-agent job is started by hvd-agent serve, with a socket as its input");
  }
  UniqueFd listener(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!listener.is_valid() || dup2(nothing.get(), STDIN_FILENO) < 0) {
    return make_error("cannot take the job's socket: {}", strerror(errno));
  }
  fcntl(listener.get(), F_SETFL, O_NONBLOCK);
  return listener;
}

// Everything that lives as long as the job. The order of members is that of their needs.
class JobAgent {
 public:
  JobAgent(Loop& loop, UniqueFd socket, ShimProcess shim, CgroupPlace place)
      : loop_(loop),
        job_(loop, std::move(shim), config(std::move(place))),
        door_(loop, std::move(socket),
              {[this](UniqueFd connection) { stream_->attach(std::move(connection)); },
               [this](const std::string& reason) { stop(reason); }}),
        flush_limit_(loop) {}

  [[nodiscard]] Result<void> start() {
    auto pair = make_stream_pair();
    if (!pair) return tl::unexpected(pair.error());
    ResumableStream::Handlers handlers;
    handlers.on_broken = [this](const std::string& why) {
      log(LogLevel::kInfo, "the connection to the launcher has broken: {}", why);
      if (is_job_over_) loop_.stop();
    };
    handlers.on_over = [this](const std::string& why) {
      if (!why.empty()) log(LogLevel::kError, "{}", why);
      job_.take_stream_end();
      if (is_job_over_) loop_.stop();
    };
    stream_ = ResumableStream::start(loop_, std::move(pair->second), Nanos(0), std::move(handlers));
    if (auto started = job_.start(std::move(pair->first)); !started) return started;
    door_.start();
    return {};
  }

  void stop(const std::string& reason) { job_.stop(reason); }
  [[nodiscard]] Nanos stop_limit() const { return job_.stop_limit(); }
  [[nodiscard]] const char* ending() const { return job_.ending(); }

  void take_log(LogLevel level, std::string_view text) {
    boost::asio::post(loop_,
                      [this, level, line = std::string(text)] { job_.take_log(level, line); });
  }

 private:
  Job::Config config(CgroupPlace place) {
    Job::Config config;
    config.node_env = ranks_environment();
    config.cgroup = std::move(place);
    config.hello_timeout = kHelloLimit;
    config.on_end = [this] { end(); };
    // Its GPUs are free before its launcher has gone, who may start the next job at once.
    config.on_ranks_gone = [this] { door_.close(); };
    return config;
  }

  // The servers are down; the launcher takes what is left, if it is there.
  void end() {
    is_job_over_ = true;
    if (!stream_->is_attached()) return loop_.stop();
    flush_limit_.start(kFlushLimit, [this] { loop_.stop(); });
  }

  Loop& loop_;
  bool is_job_over_ = false;
  std::shared_ptr<ResumableStream> stream_;
  Job job_;
  JobDoor door_;
  LimitTimer flush_limit_;
};

}  // namespace

int run_job_agent(const AgentArguments& arguments, CgroupPlace place,
                  const ServiceManager& manager) {
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  auto socket = take_listener();
  if (!socket) {
    log(LogLevel::kError, "{}", socket.error().message);
    return kFailure;
  }
  auto shim = start_shim(arguments);
  if (!shim) {
    log(LogLevel::kError, "{}", shim.error().message);
    return kFailure;
  }
  const Nanos began = boottime_now();
  Loop loop(1);
  JobAgent agent(loop, std::move(*socket), std::move(*shim), std::move(place));
  boost::asio::signal_set signals(loop);
  watch_end_signals(signals, [&agent, &manager](int) {
    (void)manager.tell("STOPPING=1");
    // After its goodbye, or the end of the wait for one, it leaves by the same ladder.
    (void)manager.extend_timeout(2 * agent.stop_limit());
    agent.stop("the agent was stopped by the service manager");
  });
  if (const auto started = agent.start(); !started) {
    log(LogLevel::kError, "{}", started.error().message);
    return kFailure;
  }
  set_log_sink([&agent](LogLevel level, std::string_view text) { agent.take_log(level, text); });
  (void)manager.tell("READY=1");
  loop.run();
  set_log_sink({});
  set_log_level(LogLevel::kInfo);
  log_with(LogLevel::kInfo,
           {{"HVDRUN_EVENT", "job-ended"},
            {"HVDRUN_JOB_ID", arguments.job_id},
            {"HVDRUN_NODE", std::to_string(arguments.node.value_or(0))}},
           "job {} node {}: {} after {}", arguments.job_id, arguments.node.value_or(0),
           agent.ending(), format_duration(boottime_now() - began));
  return 0;
}

}  // namespace hvd
