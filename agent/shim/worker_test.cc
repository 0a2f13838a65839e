#include "agent/shim/worker.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "agent/shim/exit_report.h"
#include "agent/shim/lease.h"
#include "agent/shim/spawn.h"

namespace hvd {
namespace {

using E = WorkerEvent;
using S = WorkerState;
using std::chrono::seconds;

S state_after(const std::vector<E>& events) {
  S state = S::kCreated;
  for (const E event : events) state = next_worker_state(state, event);
  return state;
}

TEST(Worker, LivesByItsTable) {
  EXPECT_EQ(state_after({E::kCloned}), S::kStarting);
  EXPECT_EQ(state_after({E::kCloned, E::kExecuted}), S::kRunning);
  EXPECT_EQ(state_after({E::kCloned, E::kExecuted, E::kReaped}), S::kEnded);
  EXPECT_EQ(state_after({E::kCloned, E::kSetUpFailed}), S::kFailing);
  EXPECT_EQ(state_after({E::kCloned, E::kSetUpFailed, E::kReaped}), S::kFailed);
  EXPECT_EQ(state_after({E::kCloned, E::kReaped}), S::kEnded);
  EXPECT_EQ(state_after({E::kCloneFailed}), S::kFailed);
}

TEST(Worker, FinalStatesStay) {
  for (const S state : {S::kEnded, S::kFailed}) {
    for (int event = 0; event < kNumWorkerEvents; ++event) {
      EXPECT_EQ(next_worker_state(state, static_cast<E>(event)), state);
    }
  }
}

TEST(Worker, IsAliveFromTheCloneToTheReaping) {
  Worker worker(0, "", Nanos(0));
  EXPECT_FALSE(worker.is_alive());
  worker.handle(E::kCloned, Nanos(1));
  EXPECT_TRUE(worker.is_alive());
  worker.handle(E::kSetUpFailed, Nanos(2));
  EXPECT_TRUE(worker.is_alive()) << "a zombie until it is reaped";
  worker.handle(E::kReaped, Nanos(3));
  EXPECT_FALSE(worker.is_alive());
}

Ending ending(int code, int status) {
  Ending result;
  result.info.si_code = code;
  result.info.si_status = status;
  return result;
}

TEST(ExitReport, TellsOurSignalFromAForeignOne) {
  Worker worker(3, "", Nanos(0));
  EXPECT_FALSE(report_ending(worker, ending(CLD_KILLED, SIGTERM), "").signal_was_ours());
  worker.note_sent(SIGTERM);
  const auto report = report_ending(worker, ending(CLD_KILLED, SIGTERM), "");
  EXPECT_TRUE(report.signal_was_ours());
  EXPECT_EQ(report.signalled(), SIGTERM);
  EXPECT_FALSE(report_ending(worker, ending(CLD_KILLED, SIGKILL), "").signal_was_ours());
  Ending swept = ending(CLD_KILLED, SIGKILL);
  swept.was_swept = true;
  EXPECT_TRUE(report_ending(worker, swept, "").signal_was_ours());
}

TEST(ExitReport, TellsACoreDumpAndAnExitCode) {
  const Worker worker(3, "", Nanos(0));
  const auto dumped = report_ending(worker, ending(CLD_DUMPED, SIGSEGV), "");
  EXPECT_TRUE(dumped.core_dumped());
  EXPECT_EQ(dumped.signalled(), SIGSEGV);
  const auto exited = report_ending(worker, ending(CLD_EXITED, 7), "");
  EXPECT_EQ(exited.exited(), 7);
  EXPECT_FALSE(exited.signal_was_ours());
}

TEST(Lease, RunsOutUnlessRenewed) {
  Lease lease(seconds(15), seconds(100));
  EXPECT_FALSE(lease.is_expired(seconds(114)));
  EXPECT_TRUE(lease.is_expired(seconds(115)));
  lease.renew(seconds(110));
  EXPECT_FALSE(lease.is_expired(seconds(124)));
  EXPECT_TRUE(lease.is_expired(seconds(125)));
}

TEST(Lease, OfZeroLengthNeverRunsOut) {
  EXPECT_FALSE(Lease(seconds(0), seconds(1)).is_expired(seconds(1'000'000)));
}

TEST(Spawn, PipesOfANodeStayWellUnderTheKernelsLimit) {
  EXPECT_EQ(choose_pipe_bytes(0), 1 << 20);
  EXPECT_EQ(choose_pipe_bytes(1), 1 << 20);
  EXPECT_EQ(choose_pipe_bytes(16), 1 << 20);
  EXPECT_EQ(choose_pipe_bytes(17), 1 << 19);
  EXPECT_EQ(choose_pipe_bytes(500), 1 << 16);
}

}  // namespace
}  // namespace hvd
