#include "agent/job_place.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <filesystem>
#include <utility>

#include "agent/own_children.h"
#include "agent/program_answer.h"
#include "base/log.h"
#include "base/unix_address.h"

namespace hvd {
namespace {

constexpr auto kLookAgain = std::chrono::milliseconds(2);
// For what a job's agent left when it was killed: its shim ends the ranks, then itself.
constexpr int kStrayLooks = 60;
constexpr auto kStrayPause = std::chrono::milliseconds(500);
constexpr auto kStopLimit = std::chrono::seconds(10);
constexpr int kConnectionsToOne = 512;
constexpr std::string_view kSystemdRun = "/usr/bin/systemd-run";

std::vector<std::string> agent_command(const JobPlaceConfig& config, const JobRecord& record,
                                       const std::vector<std::string>& words) {
  std::vector<std::string> command = {config.program, "job",    "--job",
                                      record.job_id,  "--node", std::to_string(record.node)};
  if (!record.unit.empty()) command.emplace_back("--unit");
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

// In a session of its own, without a descriptor of ours but standard error.
int spawn_apart(const std::vector<std::string>& command, const std::vector<std::string>& env,
                int input, pid_t* pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int error = posix_spawn(pid, "/proc/self/exe", &actions, &attributes,
                                pointers(command).data(), pointers(env).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

Task<void> ask_to_stop(Loop& loop, EnvList env, std::string unit) {
  ProgramQuestion question;
  question.words = {"systemctl", "stop", "--no-block", "--no-ask-password", unit};
  question.env = std::move(env);
  question.limit = kStopLimit;
  const ProgramAnswer answer = co_await ask_program(loop, std::move(question));
  const bool has_gone = answer.output.find("not loaded") != std::string::npos;
  if (!answer.problem.empty() && !has_gone) {
    log(LogLevel::kWarning, "systemctl stop {} {}: {}", unit, answer.problem, answer.output);
  }
}

}  // namespace

Task<void> keep_child(Loop& loop, pid_t pid) {
  const OwnChild child(loop, pid);
  boost::asio::posix::stream_descriptor ended(loop,
                                              static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  co_await ended.async_wait(boost::asio::posix::stream_descriptor::wait_read, kAwait);
  waitpid(pid, nullptr, WNOHANG);
  // What it has left, where this is the one whom orphans come to; some of it may still be ending.
  boost::asio::steady_timer pause(loop);
  for (int i = 0; i < kStrayLooks && OwnChildren::of(loop).reap_strays(); ++i) {
    pause.expires_after(kStrayPause);
    co_await pause.async_wait(kAwait);
  }
}

bool may_start_units() {
  struct stat info {};
  return geteuid() == 0 && lstat("/run/systemd/system", &info) == 0 && S_ISDIR(info.st_mode) &&
         access(kSystemdRun.data(), X_OK) == 0;
}

std::string unit_of(const JobRecord& record) {
  return fmt::format("hvdrun-job-{}.service", record.name());
}

std::vector<std::string> unit_command(const JobPlaceConfig& config, const JobRecord& record,
                                      const std::vector<std::string>& words) {
  // Ordered behind the agent that serves, so that a shutdown ends the job first and its launcher
  // can still be told. KillMode=mixed: SIGTERM is for the agent, which ends its ranks in order.
  // --pipe: the unit's standard input is systemd-run's, the job's socket.
  std::vector<std::string> command = {std::string(kSystemdRun),
                                      "--quiet",
                                      "--collect",
                                      "--no-ask-password",
                                      "--pipe",
                                      "--unit=" + unit_of(record),
                                      "--slice=hvdrun.slice",
                                      "--service-type=notify",
                                      "--description=Job " + record.job_id + " of hvdrun"};
  for (const std::string& property :
       {"User=" + record.user, std::string("WorkingDirectory=/"), std::string("KillMode=mixed"),
        std::string("TimeoutStartSec=30"), std::string("TimeoutStopSec=60"),
        std::string("After=hvd-agent.service"), std::string("Delegate=yes"),
        std::string("TasksMax=infinity"), std::string("LimitMEMLOCK=infinity"),
        std::string("LimitNOFILE=1048576"), std::string("LimitCORE=0:infinity"),
        std::string("OOMPolicy=continue"), std::string("NoNewPrivileges=yes"),
        "LogExtraFields=HVDRUN_JOB_ID=" + record.job_id,
        fmt::format("LogExtraFields=HVDRUN_NODE={}", record.node),
        std::string("SyslogIdentifier=hvd-agent")}) {
    command.insert(command.end(), {"-p", property});
  }
  command.push_back("--");
  const std::vector<std::string> agent = agent_command(config, record, words);
  command.insert(command.end(), agent.begin(), agent.end());
  return command;
}

void JobPlace::stop_unit(const JobRecord& record) const {
  if (record.unit.empty()) return;
  boost::asio::co_spawn(loop_, ask_to_stop(loop_, config_.env, record.unit), boost::asio::detached);
}

std::vector<std::string> JobPlace::reap_command(const JobRecord& record,
                                                const std::vector<std::string>& words) const {
  std::vector<std::string> command;
  if (!record.unit.empty()) {
    command = {std::string(kSystemdRun),
               "--quiet",
               "--collect",
               "--no-ask-password",
               "--pipe",
               "--slice=hvdrun.slice",
               "-p",
               "User=" + record.user,
               "-p",
               "SyslogIdentifier=hvd-agent",
               "--"};
  }
  command.insert(command.end(), {config_.program, "reap", "--job", record.job_id, "--node",
                                 std::to_string(record.node)});
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

struct JobPlace::Start {
  std::unique_ptr<OutsideProgram> program;
  std::string said;
  std::string how;  // it ended; empty: it has not
};

std::string JobPlace::socket_of(const JobRecord& record) const {
  return config_.folder + "/" + record.name();
}

// systemd-run is not needed once the job's agent is up, and not wanted if it is not: it only
// watches.
Task<Result<UniqueFd>> JobPlace::start(const JobRecord& record,
                                       const std::vector<std::string>& words, SteadyTime deadline) {
  auto listener = listen_for(record);
  if (!listener) co_return tl::unexpected(listener.error());
  const auto start = std::make_shared<Start>();
  auto begun = record.unit.empty() ? start_child(record, words, listener->get())
                                   : start_unit(record, words, listener->get(), start);
  listener->reset();
  auto up = co_await wait_until_up(record, *start, begun, deadline);
  start->program.reset();
  if (!up) {
    stop_unit(record);
    clear(record);
    co_return tl::unexpected(up.error());
  }
  co_return reach(record);
}

Task<Result<void>> JobPlace::wait_until_up(const JobRecord& record, const Start& start,
                                           Result<void> begun, SteadyTime deadline) {
  if (!begun) co_return begun;
  auto asked = reach(record);
  if (!asked) co_return tl::unexpected(asked.error());
  [[maybe_unused]] const ssize_t sent =
      ::send(asked->get(), "up\n", 3, MSG_NOSIGNAL | MSG_DONTWAIT);
  boost::asio::steady_timer pause(loop_);
  while (true) {
    std::array<char, 3> word{};
    const ssize_t n = ::recv(asked->get(), word.data(), word.size(), MSG_DONTWAIT);
    const bool is_silent = n < 0 && (errno == EAGAIN || errno == EINTR);
    if (n > 0) co_return Result<void>();
    if (!start.how.empty()) co_return make_error("systemd-run {}: {}", start.how, start.said);
    if (!is_silent) co_return make_error("the job's agent ended at once");
    if (std::chrono::steady_clock::now() >= deadline) {
      co_return make_error("the job's agent did not come up in time");
    }
    pause.expires_after(kLookAgain);
    co_await pause.async_wait(kAwait);
  }
}

// Where the user of the job can neither see it nor put something else in its place. Only the job's
// agent holds it from then on, and systemd for as long as the unit lives.
Result<UniqueFd> JobPlace::listen_for(const JobRecord& record) const {
  const std::string path = socket_of(record);
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = unix_address(path);
  if (path.size() >= sizeof address.sun_path) {
    return make_error("{} is too long a path for a socket", path);
  }
  unlink(path.c_str());
  if (!socket.is_valid() ||
      bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(socket.get(), kConnectionsToOne) != 0) {
    return make_error("cannot listen at {}: {}", path, strerror(errno));
  }
  return socket;
}

// The program is kept by its own handlers until it has ended.
Result<void> JobPlace::start_unit(const JobRecord& record, const std::vector<std::string>& words,
                                  int listener, const std::shared_ptr<Start>& start) {
  OutsideProgram::Request request;
  request.executable = kSystemdRun;
  request.words = unit_command(config_, record, words);
  request.env = config_.env;
  request.cwd = "/";
  request.input = listener;
  auto program = OutsideProgram::start(
      loop_, request,
      {[start](std::string_view bytes) { start->said += std::string(bytes.substr(0, 500)); },
       [start](const std::string& how) {
         start->how = how;
         while (start->said.ends_with('\n')) start->said.pop_back();
         start->program.reset();
       }});
  if (!program) return tl::unexpected(program.error());
  start->program = std::move(*program);
  return {};
}

Result<void> JobPlace::start_child(const JobRecord& record, const std::vector<std::string>& words,
                                   int listener) const {
  std::vector<std::string> env;
  for (const auto& [name, value] : config_.env) env.push_back(name + "=" + value);
  pid_t pid = 0;
  const int error = spawn_apart(agent_command(config_, record, words), env, listener, &pid);
  if (error != 0) return make_error("cannot start the job's agent: {}", strerror(error));
  boost::asio::co_spawn(loop_, keep_child(loop_, pid), boost::asio::detached);
  return {};
}

Result<UniqueFd> JobPlace::reach(const JobRecord& record) const {
  const std::string path = socket_of(record);
  UniqueFd connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = unix_address(path);
  if (connection.is_valid() &&
      ::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
          0) {
    return connection;
  }
  if (errno == EAGAIN) {
    return make_error(ExitCode::kTimeout, "{} takes no more connections", path);
  }
  return make_error("nobody listens: {}", strerror(errno));
}

bool JobPlace::is_alive(const JobRecord& record) const {
  const auto reached = reach(record);
  return reached || reached.error().code == ExitCode::kTimeout;
}

std::vector<std::string> JobPlace::names() const {
  std::vector<std::string> all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(config_.folder, error)) {
    all.push_back(entry.path().filename().string());
  }
  return all;
}

void JobPlace::clear(const JobRecord& record) const { unlink(socket_of(record).c_str()); }

}  // namespace hvd
