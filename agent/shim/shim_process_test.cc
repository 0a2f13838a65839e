// Drives a real shim, in a forked child, over a socket pair, as the agent does.
#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/shim/frames.h"
#include "agent/shim/job_cgroup.h"
#include "agent/shim/proc.h"
#include "agent/shim/shim_main.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "hvdrun/v1/shim.pb.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;
using hvdrun::v1::ExitReport;
using hvdrun::v1::FromShim;
using hvdrun::v1::ShimConfig;
using hvdrun::v1::ShimSpawn;
using hvdrun::v1::ToShim;
using hvdrun::v1::WorkerSpec;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr Nanos kPatience = seconds(20);

std::string program(const std::string& name) { return HVDRUN_TEST_PROGRAMS "/" + name; }

int num_open_fds() {
  return static_cast<int>(std::distance(fs::directory_iterator("/proc/self/fd"), {}));
}

bool is_running(pid_t pid) {
  const auto stat = read_stat(pid);
  return stat && is_alive(*stat);
}

// What a shim has said so far.
struct Record {
  std::map<std::uint32_t, pid_t> started;
  std::map<std::uint32_t, ExitReport> exits;
  std::map<std::uint32_t, std::string> out;
  std::map<std::uint32_t, int> num_ends;
  std::vector<std::string> notices;
  std::optional<hvdrun::v1::Finished> finished;
  std::uint64_t unacknowledged = 0;
  std::uint64_t pong = 0;
  std::uint64_t input_taken = 0;
  bool is_input_closed = false;
  std::optional<hvdrun::v1::Signalled> signalled;
  int num_exit_reports = 0;
  pid_t pid = 0;
  std::string containment;
  bool has_ended = false;  // end of file
};

class ShimTest : public testing::Test {
 protected:
  void SetUp() override {
    fds_before_ = num_open_fds();
    char name[] = "/tmp/hvdrun-shim-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
    fs::create_directory(root_ / "job");
    config_.set_job_id("shim-test-" + root_.filename().string());
    config_.set_node(1);
    config_.set_lease_ms(60'000);
    config_.set_grace_ms(300);
    config_.set_verify_ms(5'000);
    config_.set_drain_ms(200);
    config_.set_job_dir(root_ / "job");
    config_.set_log_window(1 << 20);
  }

  void TearDown() override {
    socket_.reset();
    if (shim_ > 0) {
      EXPECT_TRUE(reap_shim(kPatience)) << "the shim does not leave";
      EXPECT_FALSE(fs::exists(root_ / "job")) << "the shim leaves the job's folder";
    }
    fs::remove_all(root_);
    for (const auto& [rank, pid] : seen.started) EXPECT_FALSE(is_running(pid)) << "rank " << rank;
    EXPECT_EQ(num_open_fds(), fds_before_);
  }

  void start_shim() {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    shim_ = fork();
    if (shim_ == 0) {
      if (user_ != 0 && (setgid(user_) != 0 || setuid(user_) != 0)) _exit(96);
      _exit(run_shim(ends[1]));
    }
    close(ends[1]);
    socket_.reset(ends[0]);
    ToShim message;
    *message.mutable_config() = config_;
    send(message);
    ASSERT_TRUE(wait_until([&] { return seen.pid > 0; }));
    EXPECT_EQ(seen.pid, shim_);
  }

  void send(const ToShim& message) {
    const std::string frame = encode_frame(message);
    ASSERT_EQ(::send(socket_.get(), frame.data(), frame.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(frame.size()));
  }

  WorkerSpec& add(const std::string& executable, const std::vector<std::string>& arguments = {}) {
    WorkerSpec& spec = *spawn_.add_workers();
    spec.set_rank(static_cast<std::uint32_t>(spawn_.workers_size()) - 1);
    spec.set_executable(executable);
    spec.add_argv(executable);
    for (const std::string& argument : arguments) spec.add_argv(argument);
    set_env(spec, "HVDRUN_JOB_ID", config_.job_id());
    set_env(spec, "HVDRUN_NODE", std::to_string(config_.node()));
    set_env(spec, "PATH", "/usr/bin:/bin");
    spec.set_cwd(root_);
    return spec;
  }
  WorkerSpec& add_shell(const std::string& script) { return add("/bin/sh", {"-c", script}); }

  static void set_env(WorkerSpec& spec, const std::string& name, const std::string& value) {
    auto& variable = *spec.add_env();
    variable.set_name(name);
    variable.set_value(value);
  }

  void spawn() {
    ToShim message;
    *message.mutable_spawn() = spawn_;
    send(message);
  }
  void start_all() {
    start_shim();
    spawn();
  }
  // Every worker has been executed and has printed this.
  void await_output(const std::string& text) {
    ASSERT_TRUE(wait_until([&] {
      for (const WorkerSpec& spec : spawn_.workers()) {
        if (seen.out[spec.rank()].find(text) == std::string::npos) return false;
      }
      return true;
    }));
  }
  void stop(Nanos grace, int signal = 0) {
    ToShim message;
    message.mutable_stop()->set_grace_ms(std::chrono::duration_cast<milliseconds>(grace).count());
    message.mutable_stop()->set_signal(signal);
    send(message);
  }
  void acknowledge(std::uint64_t bytes) {
    ToShim message;
    message.mutable_log_ack()->set_bytes(bytes);
    const std::string frame = encode_frame(message);
    // The shim may have finished and left since it sent those bytes: no error, as for the agent.
    if (::send(socket_.get(), frame.data(), frame.size(), MSG_NOSIGNAL) < 0) {
      EXPECT_EQ(errno, EPIPE);
    }
    seen.unacknowledged -= bytes;
  }

  // Reads what the shim sends until the predicate holds.
  bool wait_until(const std::function<bool()>& holds, Nanos patience = kPatience) {
    const Nanos deadline = boottime_now() + patience;
    while (!holds()) {
      const auto left = std::chrono::ceil<milliseconds>(deadline - boottime_now()).count();
      pollfd wait{socket_.get(), POLLIN, 0};
      if (left <= 0 || seen.has_ended || poll(&wait, 1, static_cast<int>(left)) <= 0) return false;
      receive();
    }
    return true;
  }
  bool wait_finished() {
    return wait_until([&] { return seen.finished.has_value(); });
  }

  bool reap_shim(Nanos patience) {
    const UniqueFd pidfd(sys::pidfd_open(shim_));
    pollfd wait{pidfd.get(), POLLIN, 0};
    const auto millis = std::chrono::ceil<milliseconds>(patience).count();
    if (poll(&wait, 1, static_cast<int>(millis)) <= 0) return false;
    int status = 0;
    EXPECT_EQ(waitpid(shim_, &status, 0), shim_);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
    shim_ = -1;
    return true;
  }

  // Whether this process is gone within the time. Not our child: its descriptor tells.
  static bool is_gone_within(pid_t pid, Nanos patience) {
    const UniqueFd pidfd(sys::pidfd_open(pid));
    if (!pidfd.is_valid()) return true;
    pollfd wait{pidfd.get(), POLLIN, 0};
    return poll(&wait, 1, static_cast<int>(std::chrono::ceil<milliseconds>(patience).count())) > 0;
  }

  fs::path root_;
  ShimConfig config_;
  ShimSpawn spawn_;
  Record seen;
  UniqueFd socket_;
  pid_t shim_ = -1;
  bool acknowledges_ = true;
  uid_t user_ = 0;  // whom the shim runs as; 0: as we do

 private:
  void receive() {
    std::vector<char> buffer(65536);
    const ssize_t n = read(socket_.get(), buffer.data(), buffer.size());
    seen.has_ended = n <= 0;
    if (n > 0) decoder_.append({buffer.data(), static_cast<std::size_t>(n)});
    while (const auto body = decoder_.next()) {
      FromShim message;
      ASSERT_TRUE(message.ParseFromArray(body->data(), static_cast<int>(body->size())));
      note(message);
    }
    if (acknowledges_ && seen.unacknowledged > 0) acknowledge(seen.unacknowledged);
  }

  void note(const FromShim& message) {
    EXPECT_FALSE(seen.finished.has_value()) << "Finished is the last message";
    if (message.has_ready()) {
      seen.pid = message.ready().pid();
      seen.containment = message.ready().containment();
    }
    if (message.has_started()) seen.started[message.started().rank()] = message.started().pid();
    if (message.has_exited()) {
      seen.exits[message.exited().rank()] = message.exited();
      ++seen.num_exit_reports;
    }
    if (message.has_log()) note_log(message.log());
    if (message.has_notice()) seen.notices.push_back(message.notice().text());
    if (message.has_pong()) seen.pong = message.pong().id();
    if (message.has_signalled()) seen.signalled = message.signalled();
    if (message.has_input()) {
      seen.input_taken += message.input().taken();
      seen.is_input_closed = seen.is_input_closed || message.input().is_closed();
    }
    if (message.has_finished()) seen.finished = message.finished();
  }

  void note_log(const hvdrun::v1::LogChunk& chunk) {
    seen.unacknowledged += chunk.data().size();
    seen.num_ends[chunk.rank()] += chunk.eof() ? 1 : 0;
    if (chunk.stream() == hvdrun::v1::STREAM_STDOUT) seen.out[chunk.rank()] += chunk.data();
  }

  FrameDecoder decoder_;
  int fds_before_ = 0;
};

// ---- starting and ending ----

TEST_F(ShimTest, ReportsExitCodesAndSignals) {
  add(program("exit_n"), {"0"});
  add(program("exit_n"), {"3"});
  add(program("die_by_signal"), {"11"});
  start_all();
  ASSERT_TRUE(wait_finished());
  EXPECT_EQ(seen.started.size(), 3U);
  EXPECT_TRUE(seen.exits[0].has_exited());
  EXPECT_EQ(seen.exits[0].exited(), 0);
  EXPECT_EQ(seen.exits[1].exited(), 3);
  EXPECT_EQ(seen.exits[2].signalled(), 11);
  EXPECT_FALSE(seen.exits[2].signal_was_ours());
  for (const auto& [rank, report] : seen.exits) {
    EXPECT_EQ(report.pid(), seen.started[rank]);
    EXPECT_FALSE(report.stopped());
    EXPECT_GT(report.max_rss_kib(), 0);
    EXPECT_LT(boottime_now() - Nanos(report.time_ns()), seconds(20));
    EXPECT_EQ(seen.num_ends[rank], 2) << "one end for each stream";
  }
  EXPECT_TRUE(seen.finished->clean());
  EXPECT_EQ(seen.finished->num_killed(), 0U);
  EXPECT_EQ(seen.finished->containment(), "descendants");
  EXPECT_TRUE(wait_until([&] { return seen.has_ended; }) || seen.has_ended)
      << "it leaves by itself";
}

struct StartFailure {
  const char* name;
  std::string executable;
  std::string cwd;
  hvdrun::v1::SpawnStage stage;
  int errno_value;
};

TEST_F(ShimTest, ReportsWhereAStartFailed) {
  const std::string text = root_ / "text";
  std::ofstream(text) << "no program\n";
  const std::string plain = root_ / "plain";
  std::ofstream(plain) << "#!/bin/sh\n";
  fs::permissions(text, fs::perms::owner_all);
  const std::vector<StartFailure> failures = {
      {"missing", root_ / "none", root_, hvdrun::v1::SPAWN_STAGE_EXEC, ENOENT},
      {"not executable", plain, root_, hvdrun::v1::SPAWN_STAGE_EXEC, EACCES},
      {"no format", text, root_, hvdrun::v1::SPAWN_STAGE_EXEC, ENOEXEC},
      {"no directory", "/bin/true", root_ / "nowhere", hvdrun::v1::SPAWN_STAGE_CHDIR, ENOENT},
      {"directory is a file", "/bin/true", plain, hvdrun::v1::SPAWN_STAGE_CHDIR, ENOTDIR},
  };
  for (const StartFailure& failure : failures) add(failure.executable).set_cwd(failure.cwd);
  start_all();
  ASSERT_TRUE(wait_finished());
  EXPECT_TRUE(seen.started.empty());
  for (std::uint32_t rank = 0; rank < failures.size(); ++rank) {
    SCOPED_TRACE(failures[rank].name);
    ASSERT_TRUE(seen.exits[rank].has_failed_to_start());
    EXPECT_EQ(seen.exits[rank].failed_to_start().stage(), failures[rank].stage);
    EXPECT_EQ(seen.exits[rank].failed_to_start().errno_value(), failures[rank].errno_value);
    EXPECT_EQ(seen.num_ends[rank], 2);
  }
  EXPECT_TRUE(seen.finished->clean());
}

TEST_F(ShimTest, WorkersStartWithNothingButTheirStandardDescriptorsAndDefaultSignals) {
  // What an inattentive parent leaves: an inheritable descriptor, ignored and blocked signals.
  const UniqueFd leaked(open("/dev/null", O_RDONLY));
  std::signal(SIGHUP, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  for (int i = 0; i < 20; ++i) add(program("list_fds"));
  start_all();
  ASSERT_TRUE(wait_finished());
  std::signal(SIGHUP, SIG_DFL);
  std::signal(SIGPIPE, SIG_DFL);
  for (const WorkerSpec& spec : spawn_.workers()) {
    EXPECT_EQ(seen.out[spec.rank()], "0 1 2 \n0 0\n") << "rank " << spec.rank();
  }
}

TEST_F(ShimTest, WorkersGetExactlyTheirEnvironmentArgumentsAndDirectory) {
  WorkerSpec& spec = add("/bin/sh", {"-c", "printf '%s|' \"$@\"; pwd; env | sort; ulimit -Sn", "sh",
                                     "a b", "", "$x", "-n"});
  set_env(spec, "ODD", "two\nlines");
  start_all();
  ASSERT_TRUE(wait_finished());
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const std::string& out = seen.out[0];
  EXPECT_THAT(out, HasSubstr("a b||$x|-n|" + root_.string() + "\n"));
  EXPECT_THAT(out, HasSubstr("HVDRUN_JOB_ID=" + config_.job_id() + "\nHVDRUN_NODE=1\n"));
  EXPECT_THAT(out, HasSubstr("two"));
  EXPECT_THAT(out, testing::Not(HasSubstr("HOME=")));
  EXPECT_THAT(out, HasSubstr("\n" + std::to_string(limit.rlim_max) + "\n"));
}

TEST_F(ShimTest, FiveHundredQuickWorkersAreEachReportedOnce) {
  for (int i = 0; i < 500; ++i) add("/bin/true");
  start_all();
  ASSERT_TRUE(wait_finished());
  EXPECT_EQ(seen.started.size(), 500U);
  EXPECT_EQ(seen.exits.size(), 500U);
  EXPECT_EQ(seen.num_exit_reports, 500);
  for (const auto& [rank, report] : seen.exits) EXPECT_EQ(report.exited(), 0) << "rank " << rank;
  for (const auto& [rank, ends] : seen.num_ends) EXPECT_EQ(ends, 2) << "rank " << rank;
  EXPECT_TRUE(seen.finished->clean());
}

TEST_F(ShimTest, TakesTheWorkersErrorFileAlong) {
  WorkerSpec& spec = add(program("write_error_file"), {"{\"message\": \"no data\"}"});
  set_env(spec, "TORCHELASTIC_ERROR_FILE", root_ / "job" / "error_0");
  start_all();
  ASSERT_TRUE(wait_finished());
  EXPECT_EQ(seen.exits[0].exited(), 1);
  EXPECT_EQ(seen.exits[0].error_file(), "{\"message\": \"no data\"}");
}

TEST_F(ShimTest, AnswersPingsAndSignalsLeadersOnly) {
  add_shell(
      "trap 'echo got' USR1; (trap 'echo child got' USR1; echo ready; sleep 600 & wait) & "
      "wait; wait; exit 4");
  start_all();
  await_output("ready");
  ToShim message;
  message.mutable_ping()->set_id(77);
  send(message);
  ASSERT_TRUE(wait_until([&] { return seen.pong == 77; }));
  message.mutable_signal()->set_signal(SIGUSR1);
  send(message);
  await_output("got");
  stop(seconds(0));
  ASSERT_TRUE(wait_finished());
  EXPECT_THAT(seen.out[0], testing::Not(HasSubstr("child got")));
  EXPECT_EQ(seen.exits[0].signalled(), SIGKILL);
}

// ---- the ladder ----

TEST_F(ShimTest, ObedientWorkersEndByTheFirstSignal) {
  add(program("exit_on_term"), {"0"});
  add(program("exit_on_term"), {"5", "50"});
  add_shell("echo ready; exec " + program("sleeper"));
  config_.set_grace_ms(20'000);
  start_all();
  await_output("ready");
  const Nanos begin = boottime_now();
  stop(seconds(20));
  ASSERT_TRUE(wait_finished());
  EXPECT_LT(boottime_now() - begin, seconds(3)) << "the grace is not waited out";
  EXPECT_EQ(seen.exits[0].exited(), 0);
  EXPECT_EQ(seen.exits[1].exited(), 5);
  EXPECT_EQ(seen.exits[2].signalled(), SIGTERM);
  EXPECT_TRUE(seen.exits[2].signal_was_ours());
  for (const auto& [rank, report] : seen.exits) EXPECT_TRUE(report.stopped()) << "rank " << rank;
  EXPECT_EQ(seen.finished->num_killed(), 0U);
}

TEST_F(ShimTest, TheFirstSignalIsTheOneAskedFor) {
  add_shell("trap 'exit 9' INT; echo ready; while :; do sleep 0.05; done");
  start_all();
  await_output("ready");
  stop(seconds(10), SIGINT);
  ASSERT_TRUE(wait_finished());
  EXPECT_EQ(seen.exits[0].exited(), 9);
}

TEST_F(ShimTest, DeafWorkersAreKilledAfterTheGrace) {
  add(program("ignore_term"));
  add(program("ignore_term"));
  start_all();
  await_output("deaf");
  const Nanos begin = boottime_now();
  stop(milliseconds(300));
  ASSERT_TRUE(wait_finished());
  EXPECT_GE(boottime_now() - begin, milliseconds(300));
  EXPECT_LT(boottime_now() - begin, seconds(3));
  EXPECT_EQ(seen.exits[0].signalled(), SIGKILL);
  EXPECT_TRUE(seen.exits[0].signal_was_ours());
  EXPECT_TRUE(seen.exits[0].stopped());
  EXPECT_EQ(seen.finished->num_killed(), 2U);
  EXPECT_TRUE(seen.finished->clean());
}

TEST_F(ShimTest, ASecondStopOnlyShortensTheGrace) {
  add(program("ignore_term"));
  start_all();
  await_output("deaf");
  const Nanos begin = boottime_now();
  stop(seconds(30));
  stop(milliseconds(200));
  stop(seconds(30));
  ASSERT_TRUE(wait_finished());
  EXPECT_GE(boottime_now() - begin, milliseconds(200));
  EXPECT_LT(boottime_now() - begin, seconds(5));
}

TEST_F(ShimTest, AStoppedWorkerDiesOfTheFirstSignal) {
  add_shell("echo ready; exec " + program("sleeper"));
  start_all();
  await_output("ready");
  ASSERT_EQ(kill(seen.started[0], SIGSTOP), 0);
  stop(seconds(20));
  ASSERT_TRUE(wait_finished());
  EXPECT_EQ(seen.exits[0].signalled(), SIGTERM);
}

TEST_F(ShimTest, AStopRightBehindTheSpawnMissesNoWorker) {
  for (int i = 0; i < 50; ++i) add(program("sleeper"));
  start_shim();
  spawn();
  stop(seconds(20));
  const Nanos begin = boottime_now();
  ASSERT_TRUE(wait_finished());
  EXPECT_LT(boottime_now() - begin, seconds(10));
  EXPECT_EQ(seen.exits.size(), 50U);
  for (const auto& [rank, report] : seen.exits) EXPECT_EQ(report.signalled(), SIGTERM) << rank;
}

TEST_F(ShimTest, AGroupKeepsItsGraceWhenItsLeaderIsDead) {
  // The shell dies of the first signal at once; its child needs a moment to save its work.
  const std::string mark = root_ / "saved";
  add_shell("(trap 'sleep 0.3; echo done > " + mark +
            "; exit 0' TERM; echo ready; while :; do sleep 0.05; done) & wait");
  start_all();
  await_output("ready");
  stop(seconds(10));
  ASSERT_TRUE(wait_finished());
  EXPECT_TRUE(fs::exists(mark));
  EXPECT_EQ(seen.exits[0].signalled(), SIGTERM);
  EXPECT_TRUE(seen.finished->clean());
}

TEST_F(ShimTest, StopsGroupWhenLeaderIsDead) {
  // Rank 0 has left a child in its group that writes what signal it got; rank 1 keeps the job
  // going.
  const std::string mark = root_ / "heard";
  add_shell("(trap 'echo term > " + mark +
            "; exit 0' TERM; echo ready; "
            "while :; do sleep 0.05; done) & exec true");
  add_shell("echo ready; exec " + program("sleeper"));
  start_all();
  await_output("ready");
  ASSERT_TRUE(wait_until([&] { return seen.exits.contains(0); }));
  stop(seconds(10));
  ASSERT_TRUE(wait_finished());
  EXPECT_TRUE(fs::exists(mark));
}

TEST_F(ShimTest, AStopBeforeAnySpawnFinishes) {
  start_shim();
  stop(seconds(10));
  ASSERT_TRUE(wait_finished());
  EXPECT_TRUE(seen.finished->clean());
}

// ---- what workers leave behind ----

pid_t printed_pid(const std::string& out) { return static_cast<pid_t>(std::atol(out.c_str())); }

TEST_F(ShimTest, ADaemonThatAWorkerLeftIsKilledWhenAllHaveEnded) {
  add(program("fork_and_leave"));
  start_all();
  ASSERT_TRUE(wait_finished());
  const pid_t daemon = printed_pid(seen.out[0]);
  ASSERT_GT(daemon, 1);
  EXPECT_FALSE(is_running(daemon));
  EXPECT_EQ(seen.exits[0].exited(), 0);
  EXPECT_EQ(seen.finished->num_killed(), 1U);
  EXPECT_TRUE(seen.finished->clean());
}

TEST_F(ShimTest, ADaemonIsKilledWithoutWaitingForTheGrace) {
  add(program("fork_and_leave"), {"stay"});
  start_all();
  await_output("\n");
  const pid_t daemon = printed_pid(seen.out[0]);
  ASSERT_TRUE(is_running(daemon));
  const Nanos begin = boottime_now();
  stop(seconds(20));
  ASSERT_TRUE(wait_finished());
  EXPECT_LT(boottime_now() - begin, seconds(5));
  EXPECT_FALSE(is_running(daemon));
}

TEST_F(ShimTest, ARanksBackgroundChildLivesAsLongAsAnyRankOfTheNode) {
  add(program("fork_and_leave"), {"group"});
  add(program("exit_on_term"), {"0"});
  start_all();
  await_output("\n");
  ASSERT_TRUE(wait_until([&] { return seen.exits.contains(0); }));
  const pid_t child = printed_pid(seen.out[0]);
  ToShim message;
  message.mutable_ping()->set_id(1);
  send(message);
  ASSERT_TRUE(wait_until([&] { return seen.pong == 1; }));
  EXPECT_TRUE(is_running(child));
  ASSERT_EQ(kill(seen.started[1], SIGTERM), 0);
  ASSERT_TRUE(wait_finished());
  EXPECT_FALSE(is_running(child));
}

class MarkedProcess {
 public:
  // A process with a job's mark that is no descendant of its shim.
  MarkedProcess(const std::string& job, const std::string& node) : pid_(fork()) {
    if (pid_ != 0) return;
    const std::string job_entry = "HVDRUN_JOB_ID=" + job;
    const std::string node_entry = "HVDRUN_NODE=" + node;
    const char* argv[] = {"sleeper", nullptr};
    const char* envp[] = {job_entry.c_str(), node_entry.c_str(), nullptr};
    execve(program("sleeper").c_str(), const_cast<char**>(argv), const_cast<char**>(envp));
    _exit(97);
  }
  ~MarkedProcess() {
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] bool has_ended() const {
    siginfo_t info{};
    return waitid(P_PID, pid_, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
  }

 private:
  pid_t pid_;
};

TEST_F(ShimTest, ClaimsItsOwnMarkAndNoOtherNodesOrJobs) {
  const MarkedProcess ours(config_.job_id(), "1");
  const MarkedProcess other_node(config_.job_id(), "2");
  const MarkedProcess other_job(config_.job_id() + "x", "1");
  add(program("exit_on_term"), {"0"});
  start_all();
  await_output("ready");
  stop(seconds(5));
  ASSERT_TRUE(wait_finished());
  EXPECT_TRUE(ours.has_ended());
  EXPECT_FALSE(other_node.has_ended());
  EXPECT_FALSE(other_job.has_ended());
}

TEST_F(ShimTest, ASetUidWorkerOfAnOrdinaryUserIsStoppedAndKilledLikeAnyOther) {
  struct statvfs file_system {};
  if (geteuid() != 0) GTEST_SKIP() << "making a set-uid program needs root";
  if (statvfs(root_.c_str(), &file_system) == 0 && (file_system.f_flag & ST_NOSUID) != 0) {
    GTEST_SKIP() << "/tmp is mounted nosuid";
  }
  user_ = 65534;
  const fs::path copy = root_ / "ignore_term";
  fs::copy(program("ignore_term"), copy);
  ASSERT_EQ(chown(root_.c_str(), user_, user_), 0);
  ASSERT_EQ(chown((root_ / "job").c_str(), user_, user_), 0);
  ASSERT_EQ(chmod(copy.c_str(), 04755), 0);
  add(copy);
  start_all();
  await_output("deaf");
  EXPECT_EQ(user_of(seen.started[0]), 0U) << "it runs as root";
  stop(milliseconds(50));
  ASSERT_TRUE(wait_finished());
  EXPECT_TRUE(seen.finished->clean());
  EXPECT_EQ(seen.exits[0].signalled(), SIGKILL);
}

// ---- the cgroup ----

class ShimInCgroup : public ShimTest {
 protected:
  void SetUp() override {
    ShimTest::SetUp();
    const auto parent = own_cgroup();
    if (!parent) GTEST_SKIP() << parent.error().message;
    config_.set_cgroup_parent(*parent);
    path_ = *parent + "/" + job_cgroup_name(config_.job_id(), config_.node());
    const auto tried = JobCgroup::make(*parent, config_.job_id(), config_.node());
    if (!tried) GTEST_SKIP() << tried.error().message;
    tried->remove();
  }

  std::string path_;
};

TEST_F(ShimInCgroup, EachWorkerIsBornInItsLeaf) {
  add_shell("grep ^0:: /proc/self/cgroup; echo done");
  add_shell("grep ^0:: /proc/self/cgroup; echo done");
  start_all();
  EXPECT_EQ(seen.containment, "cgroup " + path_);
  ASSERT_TRUE(wait_finished());
  EXPECT_THAT(seen.out[0], HasSubstr(fs::path(path_).filename().string() + "/rank0\n"));
  EXPECT_THAT(seen.out[1], HasSubstr(fs::path(path_).filename().string() + "/rank1\n"));
  EXPECT_TRUE(seen.finished->clean());
  EXPECT_EQ(seen.finished->containment(), "cgroup");
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(ShimInCgroup, KillsWhatTheWorkersLeftAndCountsIt) {
  add(program("escapee"), {"daemon", "deaf", "bare"});
  start_all();
  ASSERT_TRUE(wait_finished());
  EXPECT_EQ(seen.exits[0].exited(), 0);
  EXPECT_TRUE(seen.finished->clean());
  EXPECT_EQ(seen.finished->num_killed(), 1U);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(ShimInCgroup, AWorkerThatTheCgroupKilledWasKilledByUs) {
  add(program("ignore_term"));
  start_all();
  await_output("deaf");
  stop(milliseconds(50));
  ASSERT_TRUE(wait_finished());
  EXPECT_EQ(seen.exits[0].signalled(), SIGKILL);
  EXPECT_TRUE(seen.exits[0].signal_was_ours());
  EXPECT_TRUE(seen.finished->clean());
}

TEST_F(ShimTest, WithoutAWritableCgroupItSaysWhyAndGoesOn) {
  config_.set_cgroup_parent("/nowhere");
  add(program("escapee"), {"daemon", "deaf"});
  start_all();
  EXPECT_THAT(seen.containment, testing::StartsWith("descendants (/nowhere: "));
  ASSERT_TRUE(wait_finished());
  EXPECT_TRUE(seen.finished->clean());
  EXPECT_EQ(seen.finished->num_killed(), 1U);
}

TEST_F(ShimTest, AProcessThatBecameAnotherUserIsASurvivorForAnOrdinaryOne) {
  struct statvfs file_system {};
  if (geteuid() != 0) GTEST_SKIP() << "making a set-uid program needs root";
  if (statvfs(root_.c_str(), &file_system) == 0 && (file_system.f_flag & ST_NOSUID) != 0) {
    GTEST_SKIP() << "/tmp is mounted nosuid";
  }
  user_ = 65534;
  config_.set_verify_ms(300);
  const fs::path copy = root_ / "become_user";
  fs::copy(program("become_user"), copy);
  ASSERT_EQ(chown(root_.c_str(), user_, user_), 0);
  ASSERT_EQ(chown((root_ / "job").c_str(), user_, user_), 0);
  ASSERT_EQ(chmod(copy.c_str(), 04755), 0);
  add_shell(copy.string() + " 7 & sleep 0.2");
  start_all();
  ASSERT_TRUE(wait_finished());
  EXPECT_EQ(seen.exits[0].exited(), 0);
  EXPECT_FALSE(seen.finished->clean());
  ASSERT_EQ(seen.finished->survivors_size(), 1);
  const auto& survivor = seen.finished->survivors(0);
  EXPECT_EQ(survivor.uid(), 7U);
  EXPECT_EQ(survivor.state(), "S");
  EXPECT_THAT(survivor.command(), HasSubstr("become_user 7"));
  kill(survivor.pid(), SIGKILL);
}

// ---- lost agents and leases ----

TEST_F(ShimTest, EndOfTheSocketEndsObedientWorkersWithinASecond) {
  config_.set_grace_ms(20'000);
  add(program("exit_on_term"), {"0"});
  add_shell("echo ready; exec " + program("flood_stdout") + " 0");
  start_all();
  await_output("ready");
  const auto workers = seen.started;
  const Nanos begin = boottime_now();
  socket_.reset();
  EXPECT_TRUE(reap_shim(seconds(10)));
  EXPECT_LT(boottime_now() - begin, seconds(1));
  for (const auto& [rank, pid] : workers) EXPECT_FALSE(is_running(pid)) << "rank " << rank;
}

TEST_F(ShimTest, EndOfTheSocketKillsDeafWorkersAfterTheGrace) {
  add(program("ignore_term"));
  start_all();
  await_output("deaf");
  const Nanos begin = boottime_now();
  socket_.reset();
  EXPECT_TRUE(reap_shim(seconds(10)));
  EXPECT_GE(boottime_now() - begin, milliseconds(300));
  EXPECT_LT(boottime_now() - begin, milliseconds(1300));
}

TEST_F(ShimTest, EndOfTheSocketBeforeAnyJobEndsIt) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  shim_ = fork();
  if (shim_ == 0) _exit(run_shim(ends[1]));
  close(ends[1]);
  close(ends[0]);
  EXPECT_TRUE(reap_shim(seconds(5)));
}

TEST_F(ShimTest, BytesThatAreNoFramesCountAsALostAgent) {
  add(program("exit_on_term"), {"0"});
  start_all();
  await_output("ready");
  ASSERT_EQ(::send(socket_.get(), "\xff\xff\xff\xff", 4, MSG_NOSIGNAL), 4);
  EXPECT_TRUE(reap_shim(seconds(5)));
}

TEST_F(ShimTest, ALeaseThatRunsOutStopsTheJob) {
  config_.set_lease_ms(400);
  add(program("exit_on_term"), {"0"});
  start_all();
  await_output("ready");
  ASSERT_TRUE(wait_finished());
  EXPECT_EQ(seen.exits[0].exited(), 0);
  EXPECT_TRUE(seen.exits[0].stopped());
  ASSERT_FALSE(seen.notices.empty());
  EXPECT_EQ(seen.notices[0], "lease of 0.4 s passed without a heartbeat; stopping");
}

TEST_F(ShimTest, ARenewedLeaseHolds) {
  config_.set_lease_ms(500);
  add(program("exit_on_term"), {"0"});
  start_all();
  await_output("ready");
  for (int i = 0; i < 10; ++i) {
    ToShim renew;
    renew.mutable_renew();
    send(renew);
    EXPECT_FALSE(wait_until([&] { return !seen.exits.empty(); }, milliseconds(100)));
  }
  EXPECT_TRUE(seen.notices.empty());
  EXPECT_TRUE(wait_finished()) << "without renewal it ends";
}

TEST_F(ShimTest, AnAgentThatTakesNothingIsLeftWhenTheLeaseIsLost) {
  config_.set_lease_ms(500);
  acknowledges_ = false;
  add(program("flood_stdout"), {"0"});
  start_all();
  EXPECT_TRUE(reap_shim(seconds(10)));  // nobody reads the socket meanwhile
}

TEST_F(ShimTest, LeadersDieWithTheShim) {
  add(program("ignore_term"));
  start_all();
  await_output("deaf");
  const pid_t worker = seen.started[0];
  ASSERT_EQ(kill(shim_, SIGKILL), 0);
  ASSERT_EQ(waitpid(shim_, nullptr, 0), shim_);
  shim_ = -1;
  EXPECT_TRUE(is_gone_within(worker, seconds(2)));
}

TEST_F(ShimTest, PoliteSignalsDoNotEndTheShim) {
  add(program("exit_on_term"), {"6"});
  start_all();
  await_output("ready");
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1}) kill(shim_, signal);
  stop(seconds(5));
  ASSERT_TRUE(wait_finished());
  EXPECT_EQ(seen.exits[0].exited(), 6);
}

TEST_F(ShimTest, IsCalledHvdShim) {
  start_shim();
  EXPECT_EQ(read_stat(shim_)->comm, "hvd-shim");
}

// ---- output ----

TEST_F(ShimTest, OutputBeyondTheWindowWaitsForItsAcknowledgement) {
  config_.set_log_window(100'000);
  acknowledges_ = false;
  constexpr std::uint64_t kTotal = 3'000'000;
  add(program("flood_stdout"), {std::to_string(kTotal)});
  start_all();
  ASSERT_TRUE(wait_until([&] { return seen.unacknowledged == 100'000; }));
  EXPECT_FALSE(wait_until([&] { return seen.unacknowledged > 100'000; }, milliseconds(200)));
  acknowledges_ = true;
  acknowledge(seen.unacknowledged);
  ASSERT_TRUE(wait_finished());
  EXPECT_EQ(seen.out[0].size(), kTotal);
  EXPECT_EQ(seen.exits[0].exited(), 0);
}

TEST_F(ShimTest, OutputOfManyWorkersArrivesWholeAndInOrder) {
  constexpr std::uint64_t kTotal = 1'000'000;
  for (int i = 0; i < 8; ++i) add(program("flood_stdout"), {std::to_string(kTotal), "100"});
  start_all();
  ASSERT_TRUE(wait_finished());
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    const std::string& out = seen.out[rank];
    ASSERT_EQ(out.size(), kTotal) << "rank " << rank;
    for (std::size_t line = 0; line < kTotal / 100; ++line) {
      ASSERT_EQ(std::strtoul(out.c_str() + line * 100, nullptr, 10), line) << "rank " << rank;
    }
  }
}

TEST_F(ShimTest, AHeldPipeIsReadForTheDrainTimeOnly) {
  add(program("hold_pipe"));
  add(program("exit_on_term"), {"0"});
  start_all();
  ASSERT_TRUE(wait_until([&] { return seen.exits.contains(0); })) << "not delayed by the holder";
  EXPECT_EQ(seen.num_ends[0], 0);
  const Nanos begin = boottime_now();
  ASSERT_TRUE(wait_until([&] { return seen.num_ends[0] == 2; }));
  EXPECT_LT(boottime_now() - begin, seconds(2));
  EXPECT_EQ(seen.out[0], "leaving\n");
  stop(seconds(5));
  ASSERT_TRUE(wait_finished());
}

TEST_F(ShimTest, BothStreamsAreToldApart) {
  add_shell("echo out; echo err >&2");
  start_all();
  ASSERT_TRUE(wait_finished());
  EXPECT_EQ(seen.out[0], "out\n");
}

// ---- cost ----

TEST_F(ShimTest, SleepsWhileNothingHappens) {
  for (int i = 0; i < 8; ++i) add_shell("echo ready; exec " + program("sleeper"));
  start_all();
  await_output("ready");
  const auto switches = [&] {
    std::ifstream status("/proc/" + std::to_string(shim_) + "/status");
    std::string word;
    long n = -1;
    while (status >> word) {
      if (word == "voluntary_ctxt_switches:") status >> n;
    }
    return n;
  };
  wait_until([] { return false; }, milliseconds(200));
  const long before = switches();
  wait_until([] { return false; }, milliseconds(500));
  EXPECT_LE(switches() - before, 1);
  stop(seconds(5));
  ASSERT_TRUE(wait_finished());
}

// ---- signals and standard input ----

TEST_F(ShimTest, TellsHowManyLeadersASignalWentTo) {
  add_shell("trap 'exit 4' USR1; echo up; while :; do sleep 0.01; done");
  add_shell("trap 'exit 4' USR1; echo up; while :; do sleep 0.01; done");
  start_all();
  await_output("up");
  ToShim message;
  message.mutable_signal()->set_signal(SIGUSR1);
  message.mutable_signal()->set_id(7);
  send(message);
  ASSERT_TRUE(wait_finished());
  ASSERT_TRUE(seen.signalled);
  EXPECT_EQ(seen.signalled->id(), 7U);
  EXPECT_EQ(seen.signalled->num_ranks(), 2U);
  EXPECT_EQ(seen.exits[1].exited(), 4);
}

TEST_F(ShimTest, TheFirstSignalOfTheLadderIsTheConfigsWhoeverClimbsIt) {
  config_.set_stop_signal(SIGINT);
  config_.set_grace_ms(5000);
  add_shell("trap 'echo INT; exit 5' INT; echo up; while :; do sleep 0.01; done");
  start_all();
  await_output("up");
  stop(seconds(5));
  ASSERT_TRUE(wait_finished());
  EXPECT_EQ(seen.exits[0].exited(), 5);
}

void feed(ToShim& message, const std::string& data, bool is_end) {
  message.mutable_stdin()->set_data(data);
  message.mutable_stdin()->set_eof(is_end);
}

TEST_F(ShimTest, OneWorkerGetsTheInputAndItsEnd) {
  add_shell("cat; echo .").set_has_input(true);
  add_shell("cat; echo .");
  start_all();
  ToShim message;
  feed(message, "one ", false);
  send(message);
  feed(message, "two", true);
  send(message);
  ASSERT_TRUE(wait_finished());
  EXPECT_EQ(seen.out[0], "one two.\n");
  EXPECT_EQ(seen.out[1], ".\n");
  EXPECT_EQ(seen.input_taken, 7U);
}

TEST_F(ShimTest, AWorkerThatReadsNoMoreClosesTheInput) {
  add_shell("exec <&-; echo up; exec sleep 600").set_has_input(true);
  start_all();
  await_output("up");
  ASSERT_TRUE(wait_until([&] { return seen.is_input_closed; }));
  ToShim message;
  feed(message, "late", true);
  send(message);
  stop(seconds(5));
  ASSERT_TRUE(wait_finished());
  EXPECT_EQ(seen.input_taken, 0U);
}

TEST_F(ShimTest, AKilledWorkersReportHasTheKernelsCounters) {
  add(program("die_by_signal"), {"9"});
  add(program("exit_n"), {"3"});
  start_all();
  ASSERT_TRUE(wait_finished());
  EXPECT_TRUE(seen.exits[0].oom().is_node_counted());
  EXPECT_EQ(seen.exits[0].oom().kills(), 0U);
  EXPECT_FALSE(seen.exits[1].has_oom());
}

TEST_F(ShimTest, CoresAreAsLargeAsTheConfigAllows) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_CORE, &limit), 0);
  config_.set_core_limit(4096);
  add_shell("ulimit -c");  // in blocks of 512 bytes
  start_all();
  ASSERT_TRUE(wait_finished());
  EXPECT_EQ(seen.out[0], limit.rlim_max >= 4096 ? "8\n" : "0\n");
}

TEST(CloseFrom, LeavesTheOneToKeepBothWays) {
  for (const bool by_list : {false, true}) {
    const pid_t child = fork();
    if (child == 0) {
      const int kept = fcntl(1, F_DUPFD, 200);
      const int below = fcntl(1, F_DUPFD, 150);
      const int above = fcntl(1, F_DUPFD, 250);
      by_list ? sys::close_from_by_list(3, kept) : sys::close_from(3, kept);
      const auto is_open = [](int fd) { return fcntl(fd, F_GETFD) >= 0; };
      _exit(is_open(kept) && is_open(2) && !is_open(below) && !is_open(above) ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << (by_list ? "by list" : "by range");
  }
}

}  // namespace
}  // namespace hvd
