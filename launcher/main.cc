// hvdrun: starts one program on many GPU nodes and ends it cleanly.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/loop.h"
#include "base/own_program.h"
#include "base/process_needs.h"
#include "base/signals_blocked.h"
#include "launcher/attempts.h"
#include "launcher/build_parts.h"
#include "launcher/check_build.h"
#include "launcher/dry_run.h"
#include "launcher/events.h"
#include "launcher/options.h"
#include "launcher/plan.h"
#include "launcher/plan_notes.h"
#include "launcher/rank_files.h"
#include "launcher/report_file.h"
#include "launcher/show_config.h"
#include "launcher/signals.h"
#include "launcher/stage_source.h"
#include "launcher/transport/transport.h"
#include "proto/worker_env.h"

namespace hvd {
namespace {

int fail(const Error& error) {
  write_log(LogLevel::kError, error.message);
  return static_cast<int>(error.code);
}

int print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return static_cast<int>(ExitCode::kOk);
  return fail({fmt::format("standard output cannot be written: {}", std::strerror(errno)),
               ExitCode::kInfrastructure});
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
  // hvdrun and its agents here hold several descriptors for each node and rank; the ranks get the
  // soft limit of our caller.
  surroundings.nofile_limit = lift_descriptor_limit();
  return surroundings;
}

// Ranks begin where hvdrun does, so that must be told.
Result<std::string> working_directory() {
  std::error_code error;
  std::string path = std::filesystem::current_path(error).string();
  if (!error) return path;
  return make_error(ExitCode::kUsage,
                    "the working directory cannot be told: {}; change to one that is there",
                    error.message());
}

int run_job(Options options, std::optional<Plan> plan, EnvList environment) {
  const Nanos begun = boottime_now();
  const auto cwd = working_directory();
  if (!cwd) return fail_without_job(options, begun, cwd.error());
  if (auto fits = check_process_needs(); !fits) {
    return fail_without_job(options, begun, fits.error());
  }
  auto stage = read_stage(options.stage, *cwd);
  if (!stage) return fail_without_job(options, begun, stage.error());
  for (const std::string& note : stage->notes) log(LogLevel::kWarning, "{}", note);
  auto agent = find_agent_image();
  if (!agent) return fail_without_job(options, begun, agent.error());
  auto surroundings = make_surroundings(options, std::move(environment));
  if (!surroundings) return fail_without_job(options, begun, surroundings.error());
  if (!options.stage.empty()) surroundings->stage = &*stage;
  surroundings->cwd = *cwd;
  const Outcome outcome = run_attempts(std::move(options), std::move(plan),
                                       std::move(*surroundings), std::move(*agent));
  if (outcome.error) return fail(*outcome.error);
  if (outcome.fatal_signal != 0) die_of_signal(outcome.fatal_signal);
  return outcome.code;
}

// Before anything is started, so that a folder that cannot be written to is an error of usage. What
// stands in the files stays until ranks are started.
Result<void> make_files(const Options& options, const Plan& plan) {
  const std::string& dir = options.output.folder;
  if (dir.empty()) return {};
  return make_rank_files(dir, static_cast<std::uint32_t>(plan.ranks.size()), false);
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
    case Action::kDryRun: {
      const auto cwd = working_directory();
      if (!cwd) return cwd;
      return dry_run_text(options, environment, *cwd);
    }
    case Action::kShowConfig:
      return show_config_text(options);
    case Action::kManPage:
      return man_page();
    case Action::kBashCompletion:
      return bash_completion();
    case Action::kZshCompletion:
      return zsh_completion();
    case Action::kFishCompletion:
      return fish_completion();
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
  if (is_any_closed) ::execv(own_program().c_str(), argv);
}

int run(int argc, char** argv) {
  occupy_standard_descriptors(argv);
  unblock_signals();
  signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of its writer
  EnvList environment = take_environment();
  auto options = parse_options(std::vector<std::string>(argv, argv + argc), environment,
                               default_config_places(environment));
  if (!options) return fail(options.error());
  set_log_level(options->verbosity >= 2   ? LogLevel::kDebug
                : options->verbosity == 1 ? LogLevel::kInfo
                                          : LogLevel::kWarning);
  if (const auto text = text_for(*options, environment)) {
    if (!*text) return fail(text->error());
    return print(**text);
  }
  for (const std::string& note : options->notes) log(LogLevel::kWarning, "{}", note);

  std::optional<Plan> plan;
  if (can_plan_without_hellos(options->hosts, options->np, options->rank_order)) {
    auto made = make_plan(options->hosts, options->np, options->hosts_source, options->rank_order);
    if (!made) return fail_without_job(*options, boottime_now(), made.error());
    tell_notes(*made);
    plan = std::move(*made);
    if (auto files = make_files(*options, *plan); !files) {
      return fail_without_job(*options, boottime_now(), files.error());
    }
  }
  return run_job(std::move(*options), std::move(plan), std::move(environment));
}

}  // namespace
}  // namespace hvd

int main(int argc, char** argv) { return hvd::run(argc, argv); }
