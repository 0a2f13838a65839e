// What a shim does about processes that workers leave behind, and when it is lost itself.
#include "tests/support/shim_case.h"

namespace hvd {
namespace {

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
  if (const char* const why = why_no_set_uid()) GTEST_SKIP() << why;
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
  if (const char* const why = why_no_set_uid()) GTEST_SKIP() << why;
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

}  // namespace
}  // namespace hvd
