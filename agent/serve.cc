#include "agent/serve.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/signal_set.hpp>
#include <optional>
#include <utility>

#include "agent/end_signals.h"
#include "agent/service.h"
#include "agent/service_socket.h"
#include "agent/shim/shim_main.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/plural.h"

namespace hvd {
namespace {

// gRPC aborts where it cannot have the few that it begins with.
constexpr rlim_t kFewestDescriptors = 64;

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

}  // namespace

int run_service(const AgentArguments& arguments, Session::Place place) {
  set_log_level(LogLevel::kInfo);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  raise_descriptor_limit();
  if (!has_descriptors()) return 1;
  const auto config = config_of(arguments);
  if (!config) {
    log(LogLevel::kError, "{}", config.error().message);
    return static_cast<int>(config.error().code);
  }
  std::optional<ServiceSocket> socket;
  if (!config->socket.empty()) {
    auto claimed = ServiceSocket::claim(config->socket);
    if (!claimed) {
      log(LogLevel::kError, "{}", claimed.error().message);
      return 1;
    }
    socket.emplace(std::move(*claimed));
  }
  Loop loop(1);
  Service service(loop, std::move(socket), std::move(place));
  boost::asio::signal_set signals(loop);
  boost::asio::signal_set hangups(loop);
  watch_end_signals(signals, [&service, &hangups](int number) {
    log(LogLevel::kInfo, "got signal {}; ending {}", number,
        counted(service.num_sessions(), "session"));
    hangups.cancel();
    service.stop();
  });
  if (const auto started = service.start(*config); !started) {
    log(LogLevel::kError, "{}", started.error().message);
    return 1;
  }
  if (!arguments.config_file.empty()) {
    signals.remove(SIGHUP);
    hangups.add(SIGHUP);
    boost::asio::co_spawn(loop, reload_on_hangup(hangups, service, arguments),
                          boost::asio::detached);
  }
  log(LogLevel::kInfo, "serving at {} as pid {}", places_of(*config), getpid());
  loop.run();
  return 0;
}

}  // namespace hvd
