// A shim starts workers, ends them by the ladder, and passes on what they print.
#include "tests/support/shim_case.h"

namespace hvd {
namespace {

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

TEST_F(ShimTest, WorkersSoftLimitOfDescriptorsIsTheUsersWithinTheHardOne) {
  add("/bin/sh", {"-c", "ulimit -Sn; ulimit -Hn"}).set_nofile_limit(100);
  add("/bin/sh", {"-c", "ulimit -Sn; ulimit -Hn"}).set_nofile_limit(UINT64_MAX);
  start_all();
  ASSERT_TRUE(wait_finished());
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const std::string hard = std::to_string(limit.rlim_max) + "\n";
  EXPECT_EQ(seen.out[0], "100\n" + hard);
  EXPECT_EQ(seen.out[1], hard + hard);
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

}  // namespace
}  // namespace hvd
