// hvd-exporter: the agent of this node, as metrics for Prometheus. Until SIGTERM, SIGINT or SIGHUP.
// Exit codes: 0, 1 where it could not listen, 2 for usage.
#include <prometheus/exposer.h>
#include <signal.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/unique_fd.h"
#include "exporter/agent_scrape.h"
#include "exporter/arguments.h"

namespace hvd {
namespace {

constexpr const char* kHelp =
    "Usage: hvd-exporter [--listen ADDRESS:PORT] [--agent SOCKET]\n"
    "  or:  hvd-exporter --version | --help\n"
    "\n"
    "Metrics of the hvd-agent of this node, at http://ADDRESS:PORT/metrics for Prometheus.\n"
    "\n"
    "  --listen ADDRESS:PORT  IPv4; 0.0.0.0:9451 is every address (127.0.0.1:9451)\n"
    "  --agent SOCKET         the agent's unix socket (/run/hvdrun/agent.sock)\n";

int print(const char* text) {
  std::fputs(text, stdout);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

// The HTTP server says no more than that it failed, so the place is tried first.
Result<void> check_free(const sockaddr_in& place) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0 ||
      listen(socket.get(), 1) != 0) {
    return make_error("{}", std::strerror(errno));
  }
  return {};
}

// Short waits: a peer that says nothing holds a thread for 3 s, not for the usual 30.
std::vector<std::string> server_options(const std::string& listen) {
  return {"listening_ports",    listen, "num_threads",       "8",
          "request_timeout_ms", "3000", "enable_keep_alive", "no"};
}

Result<std::unique_ptr<prometheus::Exposer>> listen_at(const std::string& listen) {
  const auto place = parse_listen(listen);
  if (!place) return tl::unexpected(place.error());
  if (auto free = check_free(*place); !free) {
    return tl::unexpected(free.error().within("cannot listen at " + listen));
  }
  try {
    return std::make_unique<prometheus::Exposer>(server_options(listen));
  } catch (const std::exception& error) {
    return make_error("cannot listen at {}: {}", listen, error.what());
  }
}

int serve(const ExporterArguments& arguments) {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ends, number);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // before there are threads, which inherit it
  const auto scrape = std::make_shared<AgentScrape>(arguments.agent_socket);
  const auto exposer = listen_at(arguments.listen);
  if (!exposer) {
    log(LogLevel::kError, "{}", exposer.error().message);
    return 1;
  }
  (*exposer)->RegisterCollectable(scrape);
  const auto ports = (*exposer)->GetListeningPorts();
  const std::string address = arguments.listen.substr(0, arguments.listen.rfind(':'));
  log(LogLevel::kInfo, "metrics at http://{}:{}/metrics, of the agent at {}", address,
      ports.empty() ? 0 : ports.front(), arguments.agent_socket);
  int number = 0;
  sigwait(&ends, &number);
  return 0;
}

int run(const std::vector<std::string_view>& words) {
  set_log_name("hvd-exporter");
  set_log_level(LogLevel::kInfo);
  const auto arguments = parse_exporter_arguments(words);
  if (!arguments) {
    log(LogLevel::kError, "{}", arguments.error().message);
    return static_cast<int>(arguments.error().code);
  }
  if (arguments->wish == ExporterArguments::Wish::kHelp) return print(kHelp);
  if (arguments->wish == ExporterArguments::Wish::kVersion) {
    return print("hvd-exporter " HVDRUN_VERSION "\n");
  }
  return serve(*arguments);
}

}  // namespace
}  // namespace hvd

int main(int argc, char** argv) { return hvd::run({argv + (argc > 0 ? 1 : 0), argv + argc}); }
