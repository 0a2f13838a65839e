#include "agent/serve.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/signal_set.hpp>
#include <optional>
#include <utility>

#include "agent/end_signals.h"
#include "agent/service.h"
#include "agent/service_socket.h"
#include "agent/stop_reason.h"
#include "agent/users.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/plural.h"
#include "base/process_needs.h"

namespace hvd {
namespace {

// gRPC aborts where it cannot have the few that it begins with.
constexpr rlim_t kFewestDescriptors = 64;
// For the jobs to end; a ladder takes as long as its launcher has said.
constexpr auto kStopLimit = std::chrono::seconds(3700);
constexpr auto kStopStep = std::chrono::seconds(10);
constexpr auto kStopMargin = std::chrono::seconds(20);
constexpr auto kTellAgain = std::chrono::milliseconds(200);
constexpr std::string_view kObserver = "hvdrun";  // deploy/: the user of hvd-exporter

bool has_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kFewestDescriptors) return true;
  log(LogLevel::kError,
      "{} open files are allowed; an agent that stays needs {} and some for each "
      "job: raise the limit (ulimit -n)",
      limit.rlim_cur, kFewestDescriptors);
  return false;
}

// What the command line or the file says.
Result<ServiceConfig> config_of(const AgentArguments& arguments) {
  if (!arguments.config_file.empty()) return read_service_config(arguments.config_file);
  ServiceConfig config;
  config.socket = arguments.socket;
  return config;
}

// Straight to standard error: the journal tells whose a line is when it reads it, and that of a
// process that has ended by then belongs to no unit.
int end_with(const Error& error, int code) {
  const std::string line = log_line(LogLevel::kError, error.message) + "\n";
  fwrite(line.data(), 1, line.size(), stderr);
  return code;
}

// SIGHUP: the file is read again. Where it listens stays as it was.
Task<void> reload_on_hangup(boost::asio::signal_set& hangups, Service& service,
                            const AgentArguments& arguments) {
  while (true) {
    const auto [error, number] = co_await hangups.async_wait(kAwait);
    if (error) co_return;
    auto config = config_of(arguments);
    const auto done = config ? service.reload(*config) : tl::unexpected(config.error());
    if (done) {
      log(LogLevel::kInfo, "read {} again", arguments.config_file);
    } else {
      log(LogLevel::kError, "{}; going on as before", done.error().message);
    }
  }
}

std::string places_of(const ServiceConfig& config) {
  std::string text = config.socket;
  if (config.tls) {
    text += fmt::format("{}{} port {} (TLS)", text.empty() ? "" : " and ", config.tls->address,
                        config.tls->port);
  }
  return text;
}

// What the manager of services tells this process is nobody else's.
EnvList own_environment() {
  EnvList env = take_environment();
  std::erase_if(env, [](const auto& entry) { return is_service_manager_variable(entry.first); });
  return env;
}

// systemd's RuntimeDirectory= where there is one, and it stays over a restart.
std::string folder_for_state(const EnvList& env) {
  const char* const given = getenv("RUNTIME_DIRECTORY");
  const std::string folders = given == nullptr ? "" : given;
  if (!folders.empty()) return folders.substr(0, folders.find(':'));
  if (geteuid() == 0) return "/run/hvdrun";
  const std::string runtime_dir(env_value(env, "XDG_RUNTIME_DIR"));
  return runtime_dir.empty() ? fmt::format("/tmp/hvdrun-service-{}", geteuid())
                             : runtime_dir + "/hvdrun-service";
}

UniqueFd passed_socket(ServiceManager& manager) {
  auto sockets = manager.take_sockets();
  return sockets.empty() ? UniqueFd() : std::move(sockets.front().fd);
}

// The system user of the exporter may ask about the node; the group of that name opens the socket
// to him. A system's own users are in its files: this asks no directory.
std::optional<uid_t> let_observer_in(const std::optional<ServiceSocket>& socket) {
  if (!socket || geteuid() != 0) return std::nullopt;
  const auto user = user_in_files(kObserver);
  const bool is_open = user && chown(socket->path().c_str(), 0, user->gid) == 0 &&
                       chmod(socket->path().c_str(), 0660) == 0;
  if (is_open) return user->uid;
  return std::nullopt;
}

// Ready now; then that it lives, and what it does.
Task<void> tell_manager(Loop& loop, Service& service, const ServiceManager& manager) {
  const auto status = [&service] { return "STATUS=" + counted(service.num_jobs(), "job"); };
  boost::asio::steady_timer next(loop);
  for (bool is_ready_told = !manager.is_there(); !is_ready_told;) {
    is_ready_told = manager.tell("READY=1\n" + status());
    if (is_ready_told) break;
    next.expires_after(kTellAgain);
    co_await next.async_wait(kAwait);
  }
  const auto interval = manager.watchdog_interval();
  while (interval) {
    next.expires_after(*interval);
    co_await next.async_wait(kAwait);
    (void)manager.tell("WATCHDOG=1\n" + status());
  }
}

// Jobs run on over a restart; any other end ends them first, in order.
Task<void> end_service(Loop& loop, Service& service, const ServiceManager& manager, EnvList env,
                       int number) {
  log(LogLevel::kInfo, "got signal {}; ending {}", number,
      counted(service.num_sessions(), "session"));
  (void)manager.tell("STOPPING=1");
  if (service.num_jobs() > 0) {
    StopAnswer answer;
    if (number == SIGTERM) answer = co_await ask_stop_reason(loop, std::move(env));
    // Without units of their own they end with ours.
    const bool is_restart = answer.reason == StopReason::kRestart;
    const std::string_view done = is_restart ? "restarted" : "stopped";
    if (is_restart && service.has_units()) {
      log(LogLevel::kInfo, "a restart; left running: {}", counted(service.num_jobs(), "job"));
    } else {
      log(LogLevel::kInfo, "stopping {}", counted(service.num_jobs(), "job"));
      // As long as the longest grace that a launcher may have given them.
      const SteadyTime end = std::chrono::steady_clock::now() + kStopLimit;
      std::size_t left = 1;
      while (left > 0 && std::chrono::steady_clock::now() < end) {
        (void)manager.extend_timeout(kStopStep + kStopMargin);
        left =
            co_await service.stop_jobs(fmt::format("the agent was {} by the service manager", done),
                                       std::chrono::steady_clock::now() + kStopStep);
      }
      if (left > 0) log(LogLevel::kError, "{} did not end in time", counted(left, "job"));
    }
  }
  service.stop();
}

}  // namespace

int check_service(const AgentArguments& arguments) {
  const auto config = read_service_config(arguments.config_file);
  if (!config) return end_with(config.error(), static_cast<int>(ExitCode::kUsage));
  if (config->tls) {
    const auto context = make_tls_context(node_files_in(config->tls_folder), TlsEnd::kServer);
    if (!context) return end_with(context.error(), static_cast<int>(ExitCode::kUsage));
  }
  return 0;
}

int run_service(const AgentArguments& arguments, CgroupPlace cgroup, ServiceManager manager) {
  set_log_level(LogLevel::kInfo);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  lift_descriptor_limit();
  if (!has_descriptors()) return 1;
  const auto config = config_of(arguments);
  if (!config) {
    return end_with(config.error(), static_cast<int>(config.error().code));
  }
  set_log_level(config->log_level);
  std::optional<ServiceSocket> socket;
  if (!config->socket.empty()) {
    auto claimed = ServiceSocket::claim(config->socket);
    if (!claimed) {
      return end_with(claimed.error(), 1);
    }
    socket.emplace(std::move(*claimed));
  }
  const EnvList env = own_environment();
  Loop loop(1);
  Service::Config setup;
  setup.file = *config;
  // Without a file there is nobody whose jobs would have to outlive this agent.
  if (!arguments.config_file.empty()) setup.folder = folder_for_state(env);
  setup.listening = passed_socket(manager);
  setup.observer = let_observer_in(socket);
  Service service(loop, std::move(socket), {env, std::move(cgroup)}, std::move(setup));
  boost::asio::signal_set signals(loop);
  boost::asio::signal_set hangups(loop);
  watch_end_signals(signals, [&](int number) {
    hangups.cancel();
    boost::asio::co_spawn(loop, end_service(loop, service, manager, env, number),
                          boost::asio::detached);
  });
  if (const auto started = service.start(); !started) {
    return end_with(started.error(), 1);
  }
  if (!arguments.config_file.empty()) {
    signals.remove(SIGHUP);
    hangups.add(SIGHUP);
    boost::asio::co_spawn(loop, reload_on_hangup(hangups, service, arguments),
                          boost::asio::detached);
  }
  boost::asio::co_spawn(loop, tell_manager(loop, service, manager), boost::asio::detached);
  log(LogLevel::kInfo, "serving at {} as pid {}", places_of(*config), getpid());
  loop.run();
  return 0;
}

}  // namespace hvd
