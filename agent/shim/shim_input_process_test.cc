// Signals and standard input on their way to the workers, and what a shim tells of them.
#include "tests/support/shim_case.h"

namespace hvd {
namespace {

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
