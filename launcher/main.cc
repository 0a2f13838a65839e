// hvdrun: starts one program on many GPU nodes and ends it cleanly.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/log.h"
#include "base/loop.h"
#include "launcher/build_parts.h"
#include "launcher/check_build.h"
#include "launcher/dry_run.h"
#include "launcher/events.h"
#include "launcher/job.h"
#include "launcher/options.h"
#include "launcher/plan.h"
#include "launcher/report_file.h"
#include "launcher/restart.h"
#include "launcher/signals.h"
#include "launcher/transport/transport.h"
#include "proto/worker_env.h"

namespace hvd {
namespace {

int fail(const Error& error) {
  write_log(LogLevel::kError, error.message);
  return static_cast<int>(error.code);
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// gRPC must not install fork handlers or print in this process; workers get the user's own values.
EnvList take_environment() {
  EnvList environment = split_environ(environ);
  for (const char* name : {"GRPC_ENABLE_FORK_SUPPORT", "GRPC_VERBOSITY", "GRPC_TRACE"}) {
    unsetenv(name);
  }
  setenv("GRPC_ENABLE_FORK_SUPPORT", "0", 1);
  setenv("GRPC_VERBOSITY", "NONE", 1);
  return environment;
}

// Also a job that never was is told to whoever reads the report.
int fail_without_job(const Options& options, Nanos begun, const Error& error) {
  const int code = fail(error);
  if (options.records.report.empty()) return code;
  RunFacts facts;
  facts.command = options.command;
  facts.begun = begun;
  facts.ended = boottime_now();
  facts.clock.realtime_offset = realtime_now() - boottime_now();
  facts.code = code;
  facts.error = error.message;
  const auto written = write_report(options.records.report, report_json(facts));
  if (!written) write_log(LogLevel::kWarning, written.error().message);
  return code;
}

// The environment and the store hold secrets: hvdrun leaves no core. The ranks may, as far as our
// caller may; the hard limit stays, because agents on this machine inherit it. Returns that limit.
std::uint64_t forbid_own_core() {
  rlimit limit{};
  if (getrlimit(RLIMIT_CORE, &limit) != 0) return 0;
  const rlimit none{0, limit.rlim_max};
  setrlimit(RLIMIT_CORE, &none);
  return limit.rlim_cur;
}

Result<Job::Surroundings> make_surroundings(const Options& options, EnvList environment) {
  Job::Surroundings surroundings;
  const std::string& events = options.records.events;
  if (!events.empty() && events != kStdoutName) {
    const auto opened = open_events(events);
    if (!opened) return tl::unexpected(opened.error());
    surroundings.events_fd = *opened;
  }
  surroundings.environment = std::move(environment);
  surroundings.core_limit = forbid_own_core();
  return surroundings;
}

struct Attempt {
  int code = static_cast<int>(ExitCode::kInfrastructure);
  int fatal_signal = 0;
};

Attempt run_attempt(const Options& options, std::optional<Plan> plan,
                    const Job::Surroundings& surroundings, const AgentImage& agent) {
  Attempt attempt;
  Loop loop;
  Job job(loop, options, std::move(plan), surroundings, agent);
  boost::asio::co_spawn(
      loop, [&]() -> Task<void> { attempt.code = co_await job.run(); }, boost::asio::detached);
  loop.run();
  attempt.fatal_signal = job.fatal_signal();
  return attempt;
}

// The attempts of --max-restarts, one after the other; without it there is one.
class Attempts {
 public:
  Attempts(Options options, Job::Surroundings surroundings, AgentImage agent)
      : options_(std::move(options)),
        surroundings_(std::move(surroundings)),
        agent_(std::move(agent)),
        restarts_(options_.restarts),
        deadline_(std::chrono::steady_clock::now() + options_.timeout.value_or(Nanos::zero())) {
    surroundings_.on_failed = [this](const AttemptEnd& end) {
      end_ = end;
      next_ = restarts_.after(end);
      return next_.told;
    };
  }

  int run(std::optional<Plan> plan) {
    while (true) {
      next_ = {};
      const Attempt attempt = run_attempt(options_, std::move(plan), surroundings_, agent_);
      if (attempt.fatal_signal != 0) die_of_signal(attempt.fatal_signal);
      if (!next_.is_on || !prepare_next()) return attempt.code;
      plan.reset();
      if (!can_plan_without_hellos(options_.hosts, options_.np)) continue;
      auto made = make_plan(options_.hosts, options_.np, options_.hosts_source);
      if (!made) return fail(made.error());
      plan = std::move(*made);
    }
  }

 private:
  // False: the time is up.
  bool prepare_next() {
    std::this_thread::sleep_for(next_.pause);  // a signal ends us here: nothing runs
    if (options_.timeout) {
      options_.timeout = deadline_ - std::chrono::steady_clock::now();
      if (*options_.timeout <= Nanos::zero()) return false;
    }
    options_.hosts = next_.hosts;
    if (end_.num_ranks > 0) options_.np = end_.num_ranks;
    surroundings_.earlier_attempts.push_back(end_.sentence);
    return true;
  }

  Options options_;
  Job::Surroundings surroundings_;
  const AgentImage agent_;
  Restarts restarts_;
  const SteadyTime deadline_;  // of --timeout, for all attempts together
  AttemptEnd end_;
  Restarts::Decision next_;
};

int run_job(Options options, std::optional<Plan> plan, EnvList environment) {
  const Nanos begun = boottime_now();
  auto agent = find_agent_image();
  if (!agent) return fail_without_job(options, begun, agent.error());
  auto surroundings = make_surroundings(options, std::move(environment));
  if (!surroundings) return fail_without_job(options, begun, surroundings.error());
  return Attempts(std::move(options), std::move(*surroundings), std::move(*agent))
      .run(std::move(plan));
}

int terminal_columns() {
  winsize size{};
  const bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : 80;
}

// What an option asks to print instead of running a job; nullopt: run.
std::optional<Result<std::string>> text_for(const Options& options, const EnvList& environment) {
  switch (options.action) {
    case Action::kRun:
      return std::nullopt;
    case Action::kHelp:
      return help_text(terminal_columns());
    case Action::kVersion:
      return version_text();
    case Action::kCheckBuild: {
      BuildInfo build{.version = HVDRUN_VERSION, .has_ssh = true};
      find_build_parts(own_program_folder(), build);
      return check_build_text(build);
    }
    case Action::kDryRun:
      return dry_run_text(options, environment, std::filesystem::current_path().string());
    case Action::kManPage:
      return man_page();
    case Action::kBashCompletion:
      return bash_completion();
  }
  return std::nullopt;
}

// Whether the caller had closed this descriptor: it is closed still, or a library has taken its
// number for a wake-up before main().
bool was_closed(int fd) {
  std::array<char, 64> target{};
  const std::string link = fmt::format("/proc/self/fd/{}", fd);
  const ssize_t size = ::readlink(link.c_str(), target.data(), target.size());
  return size < 0 ||
         std::string_view(target.data(), static_cast<std::size_t>(size)).starts_with("anon_inode:");
}

// Nothing of ours may have the numbers of the standard descriptors, or the workers' output would be
// written into it: those that were closed become /dev/null, and hvdrun begins anew.
void occupy_standard_descriptors(char** argv) {
  bool is_any_closed = false;
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (!was_closed(fd)) continue;
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    const bool is_taken = null == fd ? ::fcntl(fd, F_SETFD, 0) == 0 : ::dup2(null, fd) == fd;
    if (null > STDERR_FILENO) ::close(null);
    is_any_closed |= is_taken;
  }
  // By its own path: the name of the process comes from it.
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (is_any_closed && !error) ::execv(self.c_str(), argv);
}

int run(int argc, char** argv) {
  occupy_standard_descriptors(argv);
  EnvList environment = take_environment();
  auto options = parse_options(std::vector<std::string>(argv, argv + argc), environment);
  if (!options) return fail(options.error());
  set_log_level(options->verbosity >= 2   ? LogLevel::kDebug
                : options->verbosity == 1 ? LogLevel::kInfo
                                          : LogLevel::kWarning);
  if (const auto text = text_for(*options, environment)) {
    if (!*text) return fail(text->error());
    print(**text);
    return static_cast<int>(ExitCode::kOk);
  }
  for (const std::string& note : options->notes) log(LogLevel::kWarning, "{}", note);

  std::optional<Plan> plan;
  if (can_plan_without_hellos(options->hosts, options->np)) {
    auto made = make_plan(options->hosts, options->np, options->hosts_source);
    if (!made) return fail_without_job(*options, boottime_now(), made.error());
    for (const std::string& note : made->notes) log(LogLevel::kInfo, "{}", note);
    plan = std::move(*made);
  }
  return run_job(std::move(*options), std::move(plan), std::move(environment));
}

}  // namespace
}  // namespace hvd

int main(int argc, char** argv) { return hvd::run(argc, argv); }
