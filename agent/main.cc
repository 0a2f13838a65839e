// hvd-agent: the node's side of hvdrun. One program, two roles: the agent of a job on the stream
// that reached the node (--stdio), and its hvd-shim; what the agent runs beside the job: a guard of
// other programs, and a look at a rank's kernel stacks; and the reap of a node that was lost. As a
// service (serve) it is the agent of every job that comes to its socket.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include <boost/asio/signal_set.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/arguments.h"
#include "agent/cgroup_place.h"
#include "agent/end_signals.h"
#include "agent/guard.h"
#include "agent/job.h"
#include "agent/job_agent.h"
#include "agent/kernel_view.h"
#include "agent/reap.h"
#include "agent/serve.h"
#include "agent/shim/shim_main.h"
#include "agent/shim_process.h"
#include "agent/stdio_stream.h"
#include "base/journal.h"
#include "base/log.h"
#include "base/parse_number.h"
#include "base/process_needs.h"
#include "base/service_manager.h"

namespace hvd {
namespace {

constexpr int kShimSocket = 3;
constexpr int kFailure = 1;
constexpr auto kFlushLimit = std::chrono::milliseconds(1000);

constexpr const char* kHelp =
    "Usage: hvd-agent serve --listen unix:PATH | --config FILE [--cgroup-root FOLDER]\n"
    "  or:  hvd-agent serve --config FILE --check\n"
    "  or:  hvd-agent reap --job ID --node INDEX [--grace-ms N]\n"
    "  or:  hvd-agent --stdio [OPTION]...\n"
    "  or:  hvd-agent --version | --help\n"
    "\n"
    "The part of hvdrun that runs on each node of a job. hvdrun brings it along by ssh and starts "
    "it\n"
    "by itself; where it is a service (serve), hvdrun comes to it by TLS.\n"
    "\n"
    "  --stdio               serve the launcher on standard input and output\n"
    "  reap                  kill what is left of a job on this node, and print as one line of\n"
    "                        JSON whether nothing is; the code is 0 then, else 1\n"
    "  serve                 stay, and serve every hvdrun of this user and root that comes to the\n"
    "                        socket (hvdrun --transport command --agent-running --rsh 'socat -\n"
    "                        UNIX-CONNECT:PATH'); SIGTERM ends all jobs, then it\n"
    "  --listen unix:PATH    the socket's absolute path, in a folder that only its owner can "
    "change\n"
    "  --config FILE         serve: instead of --listen; where to listen, also by TLS, with which\n"
    "                        certificates, and who may come; read again at SIGHUP\n"
    "  --check               serve: look whether FILE and its certificates are right, and end\n"
    "  --job ID, --node INDEX\n"
    "                        the job, and the node's place in its host list\n"
    "  --grace-ms N          reap: so long an agent that still works may end the job itself\n"
    "  --cgroup-root FOLDER  where the job's cgroup is made, \"none\": nowhere\n"
    "  --user-scope          ask the user's systemd for a cgroup where there is no other\n"
    "  --marker TEXT         first word of the line that says that the agent is ready\n"
    "  --version             print the version\n"
    "  --help                print this\n";

void send_log_to(Loop& loop, Job& job) {
  set_log_sink([&loop, &job](LogLevel level, std::string_view text) {
    boost::asio::post(loop, [&job, level, line = std::string(text)] { job.take_log(level, line); });
  });
}

// The order matters: the stream aside, the shim started, the launcher told, all before gRPC exists.
Result<void> serve(const AgentArguments& arguments, CgroupPlace place) {
  EnvList node_env = take_environment();
  auto stream = StdioStream::take();
  if (!stream) return tl::unexpected(stream.error());
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  auto shim = start_shim(arguments);
  if (!shim) return tl::unexpected(shim.error());
  signal(SIGPIPE, SIG_IGN);
  const std::string ready = fmt::format("{} ready {}\n", arguments.marker, HVDRUN_VERSION);
  if (auto told = stream->write(ready); !told) return told;
  Loop loop(1);
  Job::Config config;
  config.node_env = std::move(node_env);
  config.cgroup = std::move(place);
  config.on_end = [&loop] { loop.stop(); };
  Job job(loop, std::move(*shim), std::move(config));
  send_log_to(loop, job);
  boost::asio::signal_set signals(loop);
  watch_end_signals(signals, [&job](int number) {
    log(LogLevel::kWarning, "got signal {}; stopping the job", number);
    job.take_stream_end();
  });
  auto socket =
      stream->open([&loop, &job] { boost::asio::post(loop, [&job] { job.take_stream_end(); }); });
  if (!socket) return tl::unexpected(socket.error());
  if (auto started = job.start(std::move(*socket)); !started) return started;
  loop.run();
  // The servers are down and their calls released; no other thread posts to the loop from here on.
  set_log_sink({});
  stream->close(kFlushLimit);
  return {};
}

int print(FILE* to, std::string_view text, int code) {
  fwrite(text.data(), 1, text.size(), to);
  return code;
}

int run_agent(const AgentArguments& arguments, int argc, char** argv) {
  set_log_name("hvd-agent");
  signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of its writer
  if (auto fits = check_process_needs(); !fits) {
    log(LogLevel::kError, "{}", fits.error().message);
    return kFailure;
  }
  if (arguments.is_check) return check_service(arguments);
  CgroupPlace place = find_cgroup_place(arguments, std::vector<std::string>(argv, argv + argc));
  const bool is_job = arguments.role == AgentArguments::Role::kJob;
  if (is_job || arguments.role == AgentArguments::Role::kListen) {
    auto manager = ServiceManager::take();
    if (!manager) {
      log(LogLevel::kError, "{}", manager.error().message);
      return kFailure;
    }
    if (arguments.is_unit) join_journal("hvd-agent");
    log_to_journal();
    return is_job ? run_job_agent(arguments, std::move(place), *manager)
                  : run_service(arguments, std::move(place), std::move(*manager));
  }
  const auto served = serve(arguments, std::move(place));
  if (served) return 0;
  log(LogLevel::kError, "{}", served.error().message);
  return kFailure;
}

int print_stacks(std::string_view leader) {
  const auto pid = parse_number<pid_t>(leader);
  if (!pid) return kFailure;
  return print(stdout, describe_rank(*pid), 0);
}

}  // namespace
}  // namespace hvd

int main(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "shim") return hvd::run_shim(hvd::kShimSocket);
  if (argc == 2 && first == "scope-check") return hvd::check_scope();
  if (first == "guard") return hvd::run_guard(argc, argv);
  if (argc == 3 && first == "stacks") return hvd::print_stacks(argv[2]);
  if (argc == 2 && first == "--version") {
    return hvd::print(stdout, "hvd-agent " HVDRUN_VERSION "\n", 0);
  }
  const std::string_view last = argc > 1 ? argv[argc - 1] : "";
  if (last == "--help" || (argc == 2 && last == "-h")) return hvd::print(stdout, hvd::kHelp, 0);
  const auto arguments =
      hvd::parse_arguments(std::vector<std::string_view>(argv + (argc > 0 ? 1 : 0), argv + argc));
  if (!arguments) {
    return hvd::print(stderr, "hvd-agent: error: " + arguments.error().message + "\n",
                      static_cast<int>(hvd::ExitCode::kUsage));
  }
  if (arguments->role == hvd::AgentArguments::Role::kReap) return hvd::run_reap(*arguments);
  return hvd::run_agent(*arguments, argc, argv);
}
