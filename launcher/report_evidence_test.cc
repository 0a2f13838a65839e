#include "launcher/report_evidence.h"

#include <gmock/gmock.h>
#include <signal.h>

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

v1::KernelFacts killed(int pid, const std::string& text) {
  v1::KernelFacts facts;
  v1::KernelFact* fact = facts.add_facts();
  fact->set_kind(v1::KernelFact::KIND_OUT_OF_MEMORY);
  fact->set_pid(pid);
  fact->set_text(text);
  return facts;
}

v1::KernelFacts xid(const std::string& text) {
  v1::KernelFacts facts;
  v1::KernelFact* fact = facts.add_facts();
  fact->set_kind(v1::KernelFact::KIND_XID);
  fact->set_text(text);
  return facts;
}

Cause killed_rank() {
  Cause cause;
  cause.kind = CauseKind::kSignalled;
  cause.value = SIGKILL;
  cause.pid = 4711;
  cause.host = "node2";
  return cause;
}

KernelNotes readable() {
  KernelNotes notes;
  notes.begin("");
  return notes;
}

v1::OomFacts counters(bool is_own, std::uint64_t kills, std::uint64_t node_kills) {
  v1::OomFacts facts;
  facts.set_cgroup("/hvdrun/w5");
  facts.set_is_own(is_own);
  facts.set_is_counted(true);
  facts.set_kills(kills);
  facts.set_is_node_counted(true);
  facts.set_node_kills(node_kills);
  return facts;
}

std::string told(Cause cause, const KernelNotes& notes) {
  add_evidence(cause, notes);
  return sentence(cause, {});
}

TEST(Evidence, TheLogNamesTheProcess) {
  KernelNotes notes = readable();
  notes.take(killed(4711, "Out of memory: Killed process 4711 (python3)"));
  EXPECT_THAT(
      told(killed_rank(), notes),
      HasSubstr("SIGKILL (signal 9; out of memory: the kernel's log says \"Out of memory: Killed "
                "process 4711 (python3)\")"));
}

TEST(Evidence, AKillOfAnotherProcessIsNoProof) {
  KernelNotes notes = readable();
  notes.take(killed(4712, "Out of memory: Killed process 4712 (python3)"));
  Cause cause = killed_rank();
  cause.oom = counters(false, 1, 1);
  EXPECT_THAT(told(cause, notes), HasSubstr("SIGKILL (signal 9; not sent by hvdrun; no sign of the "
                                            "out-of-memory killer in the kernel's log)"));
}

TEST(Evidence, TheRanksOwnControlGroupProves) {
  EXPECT_EQ(oom_proof(counters(true, 1, 1)), "oom_kill in memory.events of /hvdrun/w5 rose by 1");
  EXPECT_EQ(oom_proof(counters(false, 1, 1)), "") << "another process of the group may be meant";
  EXPECT_EQ(oom_proof(counters(true, 0, 1)), "");
}

TEST(Evidence, WithoutProofItSaysWhereWasLookedAndNoMore) {
  Cause cause = killed_rank();
  cause.oom = counters(true, 0, 3);
  EXPECT_THAT(told(cause, readable()), HasSubstr("in its control group or the kernel's log"));
  KernelNotes unreadable;
  unreadable.begin("Operation not permitted");
  EXPECT_THAT(told(cause, unreadable), HasSubstr("killer in its control group)"));
  cause.oom = counters(false, 0, 2);
  EXPECT_THAT(told(cause, unreadable), HasSubstr("ended 2 processes on its node meanwhile"));
  cause.oom = counters(false, 0, 0);
  EXPECT_THAT(told(cause, unreadable), HasSubstr("did not act on its node"));
  EXPECT_THAT(told(killed_rank(), unreadable), HasSubstr("cannot be seen on its node"));
}

TEST(Evidence, OtherEndsClaimNothing) {
  KernelNotes notes = readable();
  notes.take(killed(4711, "Out of memory: Killed process 4711 (python3)"));
  Cause cause = killed_rank();
  cause.value = SIGSEGV;
  EXPECT_THAT(told(cause, notes), Not(HasSubstr("memory")));
  cause = killed_rank();
  cause.signal_was_ours = true;
  EXPECT_THAT(told(cause, notes), Not(HasSubstr("memory")));
}

TEST(Evidence, EqualLinesCountOnceAndAllAreBounded) {
  KernelNotes notes = readable();
  for (int i = 0; i < 200; ++i) {
    notes.take(xid("NVRM: Xid (PCI:0000:3b:00): 79"));
    notes.take(killed(i, "Killed process " + std::to_string(i)));
  }
  EXPECT_THAT(notes.xids(), ElementsAre("NVRM: Xid (PCI:0000:3b:00): 79"));
  EXPECT_EQ(notes.lines().size(), KernelNotes::kMaxFacts);
  Cause cause = killed_rank();
  cause.value = SIGABRT;
  add_evidence(cause, notes);
  EXPECT_THAT(cause.xids, ElementsAre(HasSubstr("79")));
  Cause own;
  own.kind = CauseKind::kTimeout;
  add_evidence(own, notes);
  EXPECT_THAT(own.xids, IsEmpty());
}

}  // namespace
}  // namespace hvd
