#include "agent/serve.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

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

}  // namespace

int run_service(const AgentArguments& arguments, Session::Place place) {
  set_log_level(LogLevel::kInfo);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  raise_descriptor_limit();
  if (!has_descriptors()) return 1;
  auto socket = ServiceSocket::claim(arguments.socket);
  if (!socket) {
    log(LogLevel::kError, "{}", socket.error().message);
    return 1;
  }
  Loop loop(1);
  Service service(loop, std::move(*socket), std::move(place));
  boost::asio::signal_set signals(loop);
  watch_end_signals(signals, [&service](int number) {
    log(LogLevel::kInfo, "got signal {}; ending {}", number,
        counted(service.num_sessions(), "session"));
    service.stop();
  });
  service.start();
  log(LogLevel::kInfo, "serving at {} as pid {}", arguments.socket, getpid());
  loop.run();
  return 0;
}

}  // namespace hvd
