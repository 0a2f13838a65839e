#include "launcher/policy.h"

#include <errno.h>
#include <gmock/gmock.h>
#include <signal.h>

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Cause rank_cause(CauseKind kind, std::uint32_t rank, int value, Nanos time) {
  Cause cause;
  cause.kind = kind;
  cause.rank = rank;
  cause.node = rank / 4;
  cause.host = rank < 4 ? "node1" : "node2";
  cause.pid = 4711;
  cause.value = value;
  cause.time = time;
  cause.clock_error = milliseconds(1);
  return cause;
}
Cause exited(std::uint32_t rank, int code, Nanos time) {
  return rank_cause(CauseKind::kExited, rank, code, time);
}
Cause signalled(std::uint32_t rank, int signal, Nanos time) {
  return rank_cause(CauseKind::kSignalled, rank, signal, time);
}
Cause own(CauseKind kind, int value = 0) {
  Cause cause;
  cause.kind = kind;
  cause.value = value;
  cause.time = seconds(100);
  return cause;
}

std::uint32_t first_rank(std::vector<Cause> causes) {
  FirstCause first(2);
  for (Cause& cause : causes) first.add(std::move(cause), seconds(100));
  first.decide_at_once();
  return first.cause()->rank;
}

TEST(FirstCause, TheEarliestWinsInWhateverOrderTheReportsCome) {
  EXPECT_EQ(first_rank({exited(1, 1, milliseconds(5010)), exited(6, 3, milliseconds(5000))}), 6U);
  EXPECT_EQ(first_rank({exited(6, 3, milliseconds(5000)), exited(1, 1, milliseconds(5010))}), 6U);
  // Later than both clock errors: the class does not matter.
  EXPECT_EQ(first_rank({signalled(1, SIGTERM, milliseconds(5000)),
                        signalled(2, SIGSEGV, milliseconds(5003))}),
            1U);
}

TEST(FirstCause, CloserThanTheClocksAreTheClassDecides) {
  const Nanos t = milliseconds(5000);
  const Nanos later = t + microseconds(1500);
  const std::vector<Cause> by_class = {
      signalled(0, SIGSEGV, later), signalled(1, SIGKILL, later),
      exited(2, 1, later),          rank_cause(CauseKind::kNodeLost, 3, 0, later),
      signalled(4, SIGABRT, later), signalled(5, SIGPIPE, later)};
  for (std::size_t i = 0; i + 1 < by_class.size(); ++i) {
    Cause earlier = by_class[i + 1];
    earlier.time = t;
    earlier.node = 7;  // another clock
    EXPECT_EQ(first_rank({earlier, by_class[i]}), i) << i;
    EXPECT_EQ(first_rank({by_class[i], earlier}), i) << i;
  }
  EXPECT_EQ(first_rank({exited(3, 1, later), exited(5, 1, t)}), 5U);
  // One clock: the order is known.
  EXPECT_EQ(first_rank({signalled(0, SIGSEGV, later), exited(1, 1, t)}), 1U);
  EXPECT_EQ(first_rank({exited(5, 1, t), exited(3, 1, t)}), 3U);
}

TEST(FirstCause, ASignalThatSomebodySentExplainsTheErrorsOfTheOthers) {
  const Nanos t = milliseconds(5000);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGKILL}) {
    EXPECT_EQ(first_rank({exited(1, 1, t), signalled(5, signal, t + microseconds(500))}), 5U);
  }
}

TEST(FirstCause, AProvedLackOfMemoryGoesBeforeACrash) {
  const Nanos t = milliseconds(5000);
  Cause out_of_memory = signalled(5, SIGKILL, t + microseconds(500));
  out_of_memory.oom_proof = "oom_kill rose";
  EXPECT_EQ(first_rank({signalled(1, SIGABRT, t), out_of_memory}), 5U);
}

TEST(FirstCause, WhoLeftWithZeroIsNamedWhereOthersOnlyMissedIt) {
  FirstCause first(1);
  first.add_early_end(exited(3, 0, seconds(4)));
  first.add_early_end(exited(2, 0, seconds(3)));
  first.add_early_end(exited(1, 0, seconds(9)));  // after the others had missed it
  EXPECT_EQ(first.likeliest(), std::nullopt);
  first.add(exited(0, 71, seconds(5)), seconds(5));
  EXPECT_TRUE(first.is_waiting_for_another());
  EXPECT_FALSE(first.decide(seconds(5)));
  first.node_answered(0);
  EXPECT_TRUE(first.decide(seconds(5))) << "who left is known: nobody is waited for";
  EXPECT_FALSE(first.is_waiting_for_another());
  ASSERT_NE(first.cause(), nullptr);
  EXPECT_EQ(first.cause()->kind, CauseKind::kLeftEarly);
  EXPECT_EQ(first.cause()->rank, 2U);
  EXPECT_EQ(exit_code(first.cause()), 71);
  EXPECT_THAT(sentence(*first.cause(), {}),
              StartsWith("rank 2 (node1, pid 4711) ended with 0 before the others, which then lost "
                         "it at "));
  EXPECT_TRUE(is_job_broken(*first.cause()));
}

TEST(FirstCause, AnEarlyEndIsNoCauseWhereSomethingElseFailed) {
  FirstCause first(1);
  first.add_early_end(exited(2, 0, seconds(3)));
  first.add(exited(0, 71, seconds(5)), seconds(5));
  first.add(signalled(3, SIGSEGV, seconds(5)), seconds(5));
  EXPECT_FALSE(first.is_waiting_for_another());
  first.decide_at_once();
  EXPECT_EQ(first.cause()->rank, 3U);
  FirstCause none(1);
  none.add_early_end(exited(2, 0, seconds(3)));
  none.decide_at_once();
  EXPECT_EQ(none.cause(), nullptr);
}

TEST(FirstCause, OnlyFollowersWaitForAnotherAndNotForEver) {
  FirstCause first(1, milliseconds(500));
  first.add(exited(0, 71, seconds(5)), seconds(5));
  first.node_answered(0);
  EXPECT_TRUE(first.is_waiting_for_another());
  EXPECT_EQ(first.likeliest()->rank, 0U);
  EXPECT_TRUE(first.decide(seconds(5) + milliseconds(500)));
  EXPECT_FALSE(first.is_waiting_for_another());
  FirstCause plain(1);
  plain.add(exited(0, 3, seconds(5)), seconds(5));
  EXPECT_FALSE(plain.is_waiting_for_another());
}

TEST(FirstCause, OfRanksThatEndTogetherTheOneThatWasToldToIsNamed) {
  const auto ended = [](std::uint32_t rank, int code, Nanos time) {
    Cause cause = exited(rank, code, time);
    cause.uses_runtime = true;
    return cause;
  };
  FirstCause first(1);
  first.add(ended(0, 143, seconds(5)), seconds(5));
  first.node_answered(0);
  EXPECT_TRUE(first.is_waiting_for_another());
  EXPECT_FALSE(first.decide(seconds(5)));
  Cause told = ended(1, 143, seconds(5) + milliseconds(40));
  told.received_signal = SIGTERM;
  first.add(told, seconds(5) + milliseconds(40));
  EXPECT_FALSE(first.is_waiting_for_another());
  EXPECT_TRUE(first.decide(seconds(5) + milliseconds(40)));
  EXPECT_EQ(first.cause()->rank, 1U);
  EXPECT_EQ(exit_code(first.cause()), 143);
  EXPECT_THAT(sentence(*first.cause(), {}),
              HasSubstr("received SIGTERM (not sent by hvdrun) and exited with code 143 at "));
  EXPECT_EQ(first_rank({ended(3, 143, seconds(5)), signalled(2, SIGKILL, seconds(6))}), 2U);
  FirstCause plain(1);  // a program of the user's may mean anything by its code
  plain.add(exited(0, 143, seconds(5)), seconds(5));
  EXPECT_FALSE(plain.is_waiting_for_another());
}

TEST(RankEnd, ASaveAfterOurStopIsNoFailure) {
  const auto report = [](int code, bool is_stopped) {
    v1::ExitReport result;
    result.set_exited(code);
    result.set_stopped(is_stopped);
    return result;
  };
  EXPECT_EQ(rank_end(report(0, false), SIGTERM), RankEnd::kSucceeded);
  EXPECT_EQ(rank_end(report(0, true), SIGTERM), RankEnd::kStopped);
  EXPECT_EQ(rank_end(report(143, true), SIGTERM), RankEnd::kStopped);
  EXPECT_EQ(rank_end(report(130, true), SIGINT), RankEnd::kStopped);
  EXPECT_EQ(rank_end(report(143, false), SIGTERM), RankEnd::kFailed);
  EXPECT_EQ(rank_end(report(1, true), SIGTERM), RankEnd::kFailed);
  v1::ExitReport killed;
  killed.set_signalled(SIGKILL);
  EXPECT_EQ(rank_end(killed, SIGTERM), RankEnd::kFailed);
  killed.set_signal_was_ours(true);
  EXPECT_EQ(rank_end(killed, SIGTERM), RankEnd::kFailed) << "of a signal that was passed on";
  killed.set_stopped(true);
  EXPECT_EQ(rank_end(killed, SIGTERM), RankEnd::kStopped);
  EXPECT_EQ(rank_end({}, SIGTERM), RankEnd::kFailed) << "nobody knows: never success";
}

TEST(FirstCause, WhatAStoppedRankDoesNeverCounts) {
  FirstCause first(2);
  Cause stopped = signalled(1, SIGSEGV, milliseconds(1));
  stopped.stopped = true;
  EXPECT_FALSE(first.add(stopped, seconds(1)));
  EXPECT_FALSE(first.is_open());
  EXPECT_TRUE(first.add(exited(2, 3, seconds(1)), seconds(1)));
  EXPECT_FALSE(first.add(stopped, seconds(1)));
  EXPECT_TRUE(first.decide(seconds(2)));
  EXPECT_EQ(first.cause()->rank, 2U);
}

TEST(FirstCause, AWorkerThatLostAPeerFollowsWhateverElseFailed) {
  constexpr int kPeerLost = 71;
  EXPECT_EQ(first_rank({exited(3, kPeerLost, milliseconds(5000)),
                        signalled(2, SIGKILL, milliseconds(5200))}),
            2U);
  EXPECT_EQ(first_rank({exited(3, kPeerLost, milliseconds(5000)),
                        signalled(2, SIGABRT, milliseconds(5000))}),
            2U);
  EXPECT_EQ(first_rank({exited(3, kPeerLost, milliseconds(5010)),
                        exited(1, kPeerLost, milliseconds(5000))}),
            1U);
}

TEST(FirstCause, TheLostPeerIsWaitedForAndCountsThoughItsNodeIsBeingStopped) {
  FirstCause first(1, milliseconds(500));
  first.add(exited(3, 71, seconds(5)), seconds(5));
  first.node_answered(0);
  EXPECT_FALSE(first.decide(seconds(5) + milliseconds(100)));
  Cause told = signalled(1, SIGTERM, seconds(5) + milliseconds(200));
  told.stopped = true;
  told.signal_was_ours = true;
  EXPECT_FALSE(first.add(told, seconds(5) + milliseconds(200)));
  Cause saved = exited(0, 128 + SIGTERM, seconds(5) + milliseconds(200));
  saved.stopped = true;
  EXPECT_FALSE(first.add(saved, seconds(5) + milliseconds(200)));
  Cause lost = signalled(2, SIGKILL, seconds(5) + milliseconds(300));
  lost.stopped = true;
  EXPECT_TRUE(first.add(lost, seconds(5) + milliseconds(300)));
  EXPECT_TRUE(first.decide(seconds(5) + milliseconds(300)));
  EXPECT_EQ(first.cause()->rank, 2U);
}

TEST(FirstCause, TheWindowEndsWhenEveryNodeHasAnswered) {
  FirstCause first(2);
  first.node_answered(0);  // before the first failure: says nothing
  EXPECT_FALSE(first.deadline());
  first.add(exited(1, 1, seconds(10)), seconds(10));
  EXPECT_EQ(first.deadline(), seconds(10) + milliseconds(500));
  EXPECT_FALSE(first.decide(seconds(10)));
  first.node_answered(0);
  EXPECT_FALSE(first.decide(seconds(10)));
  first.node_answered(1);
  EXPECT_TRUE(first.decide(seconds(10)));
}

TEST(FirstCause, TheWindowEndsAtItsDeadlineAndALostNodeIsNotWaitedFor) {
  FirstCause late(2);
  late.add(exited(1, 1, seconds(10)), seconds(10));
  EXPECT_FALSE(late.decide(seconds(10) + milliseconds(499)));
  EXPECT_TRUE(late.decide(seconds(10) + milliseconds(500)));

  FirstCause lost(2);
  Cause cause = own(CauseKind::kNodeLost);
  cause.node = 1;
  lost.add(cause, seconds(10));
  lost.node_answered(0);
  EXPECT_TRUE(lost.decide(seconds(10)));
}

TEST(FirstCause, IsNeverOverwritten) {
  FirstCause first(1);
  first.add(exited(1, 7, seconds(10)), seconds(10));
  first.decide_at_once();
  EXPECT_FALSE(first.add(exited(0, 9, seconds(1)), seconds(11)));
  EXPECT_EQ(exit_code(first.cause()), 7);
  EXPECT_FALSE(first.is_open());
}

TEST(ExitCodes, FollowTheTable) {
  EXPECT_EQ(exit_code(nullptr), 0);
  for (const int code : {1, 2, 3, 70, 77, 126, 127, 255}) {
    const Cause cause = exited(0, code, seconds(1));
    EXPECT_EQ(exit_code(&cause), code);
  }
  for (const int signal : {SIGABRT, SIGKILL, SIGSEGV, SIGTERM}) {
    const Cause cause = signalled(0, signal, seconds(1));
    EXPECT_EQ(exit_code(&cause), 128 + signal);
  }
  const std::vector<std::pair<Cause, int>> table = {
      {own(CauseKind::kNodeLost), 125},           {own(CauseKind::kTimeout), 124},
      {own(CauseKind::kStartTimeout), 124},       {own(CauseKind::kExitTimeout), 125},
      {own(CauseKind::kUserSignal, SIGINT), 130}, {own(CauseKind::kUserSignal, SIGTERM), 143},
      {own(CauseKind::kUserSignal, SIGHUP), 129}, {own(CauseKind::kUserSignal, SIGQUIT), 131},
      {own(CauseKind::kStdoutGone), 141},         {own(CauseKind::kStdoutGone, EPIPE), 141},
      {own(CauseKind::kStdoutGone, ENOSPC), 125}};
  for (const auto& [cause, code] : table) EXPECT_EQ(exit_code(&cause), code);
}

TEST(ExitCodes, OfTheRuntimesCausesAreTheWorkersOwn) {
  Cause cause = own(CauseKind::kRegistration);
  cause.code = kMismatchCode;
  EXPECT_EQ(exit_code(&cause), 73);
  cause.code = ExitCode::kTimeout;
  EXPECT_EQ(exit_code(&cause), 124);
  cause = own(CauseKind::kStalled);
  cause.code = kStalledCode;
  EXPECT_EQ(exit_code(&cause), 72);
}

TEST(BrokenJob, IsOneThatLostARankAndNoneThatIsOnlyStopped) {
  EXPECT_TRUE(is_job_broken(exited(1, 3, seconds(1))));
  EXPECT_TRUE(is_job_broken(signalled(1, SIGKILL, seconds(1))));
  EXPECT_TRUE(is_job_broken(signalled(1, SIGTERM, seconds(1))));
  for (const auto kind : {CauseKind::kNodeLost, CauseKind::kRegistration, CauseKind::kStalled}) {
    EXPECT_TRUE(is_job_broken(own(kind)));
  }
  EXPECT_FALSE(is_job_broken(exited(1, 128 + SIGTERM, seconds(1))));
  for (const auto kind : {CauseKind::kTimeout, CauseKind::kExitTimeout, CauseKind::kUserSignal,
                          CauseKind::kStdoutGone}) {
    EXPECT_FALSE(is_job_broken(own(kind)));
  }
}

TEST(ExitCodes, OfARankThatCouldNotBeStarted) {
  const auto code = [](v1::SpawnStage stage, int error) {
    Cause cause = rank_cause(CauseKind::kFailedToStart, 0, error, seconds(1));
    cause.stage = stage;
    return exit_code(&cause);
  };
  EXPECT_EQ(code(v1::SPAWN_STAGE_EXEC, ENOENT), 127);
  EXPECT_EQ(code(v1::SPAWN_STAGE_EXEC, EACCES), 126);
  EXPECT_EQ(code(v1::SPAWN_STAGE_EXEC, ENOEXEC), 126);
  EXPECT_EQ(code(v1::SPAWN_STAGE_CHDIR, ENOENT), 125);
  EXPECT_EQ(code(v1::SPAWN_STAGE_CLONE, EAGAIN), 125);
}

TEST(StartFailure, ListsEveryNodeAndTakesTheFirstDefiniteCode) {
  const Error slow{"node1: connect: no answer", ExitCode::kTimeout, false};
  const Error refused{"authentication refused", ExitCode::kInfrastructure, false};
  const Error missing{"train.py not found", ExitCode::kNotFound, false};
  const Cause mixed = start_failure({{"node1", slow}, {"node2", refused}}, seconds(1));
  EXPECT_EQ(exit_code(&mixed), 125);
  EXPECT_EQ(mixed.text, "node1: connect: no answer; node2: authentication refused");
  const Cause late = start_failure({{"node1", slow}}, seconds(1));
  EXPECT_EQ(exit_code(&late), 124);
  const Cause not_found = start_failure({{"node3", missing}, {"node1", slow}}, seconds(1));
  EXPECT_EQ(exit_code(&not_found), 127);
}

TEST(CauseOf, TakesWhatTheReportSays) {
  v1::ExitReport report;
  report.set_rank(5);
  report.set_exited(0);
  EXPECT_FALSE(cause_of(report, 1, "node2", seconds(3), milliseconds(1)));
  report.set_signalled(SIGSEGV);
  report.set_core_dumped(true);
  report.set_pid(99);
  const auto cause = cause_of(report, 1, "node2", seconds(3), milliseconds(1));
  ASSERT_TRUE(cause);
  EXPECT_EQ(exit_code(&*cause), 139);
  EXPECT_EQ(cause->rank, 5U);
  EXPECT_EQ(cause->time, seconds(3));
  v1::ExitReport empty;  // nobody knows: never success
  const auto unknown = cause_of(empty, 0, "node1", seconds(3), milliseconds(1));
  EXPECT_EQ(exit_code(&*unknown), 125);
}

TEST(Sentence, NamesWhoWhereWhatAndWhen) {
  setenv("TZ", "UTC", 1);
  tzset();
  const JobClock clock{seconds(88), seconds(1000000)};
  EXPECT_EQ(sentence(exited(2, 3, seconds(100) + milliseconds(123)), clock),
            "rank 2 (node1, pid 4711) exited with code 3 at 13:48:20.123, 12 s after the start");
  EXPECT_THAT(sentence(exited(2, 3, seconds(100)), JobClock{}), Not(HasSubstr("after the start")));
}

TEST(Sentence, SaysWhatIsKnownOfASignalAndNoMore) {
  const JobClock clock;
  Cause crash = signalled(5, SIGSEGV, seconds(1));
  EXPECT_THAT(sentence(crash, clock),
              StartsWith("rank 5 (node2, pid 4711) was killed by SIGSEGV (signal 11) at"));
  crash.core_dumped = true;
  EXPECT_THAT(sentence(crash, clock), HasSubstr("SIGSEGV (signal 11; core dumped)"));
  crash.core_pattern = "core.%p";
  EXPECT_THAT(sentence(crash, clock),
              HasSubstr("core dumped in its working directory as core.4711)"));
  crash.core_pattern = "/var/cores/%e";
  EXPECT_THAT(sentence(crash, clock), HasSubstr("core dumped as /var/cores/%e)"));
  crash.core_pattern = "|/usr/lib/systemd/systemd-coredump %P %u";
  EXPECT_THAT(sentence(crash, clock),
              HasSubstr("core dumped, given to /usr/lib/systemd/systemd-coredump)"));
  EXPECT_THAT(sentence(signalled(5, SIGKILL, seconds(1)), clock),
              HasSubstr("was killed by SIGKILL (signal 9; not sent by hvdrun)"));
  EXPECT_THAT(sentence(signalled(5, SIGBUS, seconds(1)), clock), HasSubstr("/dev/shm"));
  Cause passed_on = signalled(5, SIGUSR1, seconds(1));
  passed_on.signal_was_ours = true;
  EXPECT_THAT(sentence(passed_on, clock), HasSubstr("SIGUSR1 (signal 10; passed on by hvdrun)"));
  EXPECT_EQ(signal_name(SIGRTMIN + 3), "signal " + std::to_string(SIGRTMIN + 3));
}

TEST(Sentence, OfEveryOtherKind) {
  const JobClock clock;
  Cause start = rank_cause(CauseKind::kFailedToStart, 1, ENOENT, seconds(1));
  start.stage = v1::SPAWN_STAGE_CHDIR;
  EXPECT_THAT(sentence(start, clock), HasSubstr("could not be started: the working directory could "
                                                "not be entered: No such file or directory"));
  Cause lost = own(CauseKind::kNodeLost);
  lost.host = "node3";
  lost.text = "no heartbeat for 15 s";
  EXPECT_THAT(sentence(lost, clock), StartsWith("node node3 was lost: no heartbeat for 15 s at "));
  Cause timeout = own(CauseKind::kTimeout);
  timeout.limit = seconds(30);
  EXPECT_THAT(sentence(timeout, clock), HasSubstr("--timeout 30 s had passed"));
  Cause slow = own(CauseKind::kStartTimeout);
  slow.limit = seconds(120);
  slow.text = "node3: authenticate";
  EXPECT_THAT(sentence(slow, clock), HasSubstr("--start-timeout 2 min 0 s: node3: authenticate"));
  EXPECT_THAT(sentence(own(CauseKind::kUserSignal, SIGINT), clock), HasSubstr("received SIGINT"));
  EXPECT_THAT(sentence(own(CauseKind::kStdoutGone), clock), HasSubstr("stdout has gone"));
  EXPECT_THAT(sentence(own(CauseKind::kStdoutGone, ENOSPC), clock),
              HasSubstr("cannot write to its stdout: No space left on device"));
  EXPECT_THAT(sentence(own(CauseKind::kExitTimeout), clock), HasSubstr("--exit-timeout"));
  Cause told = own(CauseKind::kRegistration);
  told.text = "rank 1 came twice";
  EXPECT_THAT(sentence(told, clock), StartsWith("rank 1 came twice at "));
  told.kind = CauseKind::kStalled;
  told.text = "missing rank 1";
  EXPECT_THAT(sentence(told, clock), HasSubstr("because it stalled: missing rank 1 at "));
}

TEST(Sentence, ARankThatCouldNotBeExecutedSaysWhatHelps) {
  Cause script = rank_cause(CauseKind::kFailedToStart, 1, ENOEXEC, seconds(1));
  script.stage = v1::SPAWN_STAGE_EXEC;
  EXPECT_THAT(sentence(script, {}), HasSubstr("could not execute the command: Exec format error (a "
                                              "script needs a first line like #!/bin/sh)"));
}

TEST(Sentence, WhatNeverStartedAndLimitsTellNoTimeSinceTheStart) {
  const JobClock clock{.start = seconds(1), .realtime_offset = {}};
  Cause failed = own(CauseKind::kStartFailed);
  failed.text = "node1: refused; is sshd running?";
  EXPECT_EQ(sentence(failed, clock),
            "the job could not be started: node1: refused; is sshd running?");
  Cause limit = own(CauseKind::kTimeout);
  limit.time = seconds(3);
  EXPECT_THAT(sentence(limit, clock), testing::Not(HasSubstr("after the start")));
}

}  // namespace
}  // namespace hvd
