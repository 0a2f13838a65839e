#include "agent/shim/containment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "agent/shim/proc.h"

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::string kTail = " 4194304 1 2 3 4 5 6 7 8 20 0 3 0 987654 1 2 18446744073709551615 1";

TEST(ParseStat, TakesTheLastParenthesisAsTheCommandsEnd) {
  const auto process = parse_stat("42 (a) R (b ) c) S 7 8 9 0 -1" + kTail);
  ASSERT_TRUE(process.has_value());
  EXPECT_EQ(process->pid, 42);
  EXPECT_EQ(process->comm, "a) R (b ) c");
  EXPECT_EQ(process->state, 'S');
  EXPECT_EQ(process->ppid, 7);
  EXPECT_EQ(process->pgrp, 8);
  EXPECT_EQ(process->session, 9);
  EXPECT_EQ(process->num_threads, 3);
  EXPECT_EQ(process->start_time, 987654U);
  EXPECT_FALSE(process->is_kernel_thread);
}

TEST(ParseStat, KnowsKernelThreads) {
  const auto process = parse_stat("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 5");
  ASSERT_TRUE(process.has_value());
  EXPECT_TRUE(process->is_kernel_thread);
}

TEST(ParseStat, RefusesWhatIsNoStatLine) {
  for (const char* line :
       {"", "42", "42 (x", "42 (x)", "42 (x) S", "x (x) S 1 2 3", ")(", "42 (x) S 1"}) {
    EXPECT_FALSE(parse_stat(line).has_value()) << line;
  }
}

TEST(ParseStat, AgreesWithTheKernelAboutOurselves) {
  const auto self = read_stat(getpid());
  ASSERT_TRUE(self.has_value());
  EXPECT_EQ(self->ppid, getppid());
  EXPECT_EQ(self->pgrp, getpgrp());
  EXPECT_EQ(self->session, getsid(0));
  EXPECT_TRUE(is_alive(*self));
  EXPECT_FALSE(read_stat(0x7ffffff0).has_value());
}

TEST(IsAlive, AZombieWithRunningThreadsIs) {
  ProcStat process;
  process.state = 'Z';
  EXPECT_FALSE(is_alive(process));
  process.num_threads = 2;
  EXPECT_TRUE(is_alive(process));
}

std::string environ_of(const std::vector<std::string>& entries) {
  std::string all;
  for (const std::string& entry : entries) all += entry + '\0';
  return all;
}

TEST(HasMark, NeedsBothVariablesExactly) {
  const std::vector<std::pair<std::vector<std::string>, bool>> cases = {
      {{"A=1", "HVDRUN_JOB_ID=abc", "HVDRUN_NODE=2"}, true},
      {{"HVDRUN_NODE=2", "HVDRUN_JOB_ID=abc", "Z=1"}, true},
      {{"HVDRUN_JOB_ID=abc"}, false},
      {{"HVDRUN_NODE=2"}, false},
      {{"HVDRUN_JOB_ID=abc", "HVDRUN_NODE=21"}, false},
      {{"HVDRUN_JOB_ID=abcd", "HVDRUN_NODE=2"}, false},
      {{"XHVDRUN_JOB_ID=abc", "HVDRUN_NODE=2"}, false},
      {{"XHVDRUN_JOB_ID=abc", "HVDRUN_JOB_ID=abc", "HVDRUN_NODE=2"}, true},
      {{}, false},
  };
  for (const auto& [entries, expected] : cases) {
    EXPECT_EQ(has_mark(environ_of(entries), "abc", 2), expected) << testing::PrintToString(entries);
  }
  EXPECT_FALSE(has_mark(environ_of({"HVDRUN_JOB_ID=", "HVDRUN_NODE=2"}), "", 2));
  EXPECT_TRUE(has_mark(std::string("HVDRUN_JOB_ID=abc\0HVDRUN_NODE=2", 32), "abc", 2));
}

// A table of processes: pid, parent, session; 100 is the shim, 50 the agent, 60 a sibling.
ProcStat process(pid_t pid, pid_t ppid, pid_t session, char state = 'S') {
  ProcStat p;
  p.pid = pid;
  p.ppid = ppid;
  p.pgrp = session;
  p.session = session;
  p.state = state;
  return p;
}

constexpr pid_t kShim = 1'000'100;
constexpr pid_t kAgent = 1'000'050;

Container shim_container() {
  Container container;
  container.job_id = "abc";
  container.root = kShim;
  return container;
}

std::vector<pid_t> selected(const std::vector<ProcStat>& table, const Container& container,
                            const std::set<pid_t>& marked = {},
                            const std::set<pid_t>& supervisors = {}) {
  std::vector<pid_t> pids;
  const auto is_marked = [&](const ProcStat& asked) { return marked.contains(asked.pid); };
  for (const ProcStat& p : select_members(table, container, is_marked, supervisors)) {
    pids.push_back(p.pid);
  }
  return pids;
}

std::vector<ProcStat> node_table() {
  return {process(1, 0, 1), process(kAgent, 1, 7), process(kShim, kAgent, kShim),
          process(kAgent + 10, kAgent, 7)};
}

TEST(SelectMembers, DescendantsAtAnyDepthBelongToTheJob) {
  auto table = node_table();
  table.push_back(process(1'000'201, kShim, 1'000'201));
  table.push_back(process(1'000'203, 1'000'202, 1'000'203));  // listed before its parent
  table.push_back(process(1'000'202, 1'000'201, 1'000'201));
  EXPECT_THAT(selected(table, shim_container()), ElementsAre(1'000'201, 1'000'203, 1'000'202));
}

TEST(SelectMembers, NeitherTheShimNorWhatIsAboveItNorItsSiblings) {
  EXPECT_THAT(selected(node_table(), shim_container()), IsEmpty());
  EXPECT_THAT(selected(node_table(), shim_container(), {1, kAgent, kShim}), IsEmpty())
      << "a mark that they inherited makes no difference";
}

TEST(SelectMembers, TheMarkFindsWhatSomebodyElseStarted) {
  auto table = node_table();
  table.push_back(process(1'000'300, 1, 1'000'300));
  EXPECT_THAT(selected(table, shim_container()), IsEmpty());
  EXPECT_THAT(selected(table, shim_container(), {1'000'300}), ElementsAre(1'000'300));
}

TEST(SelectMembers, WhatDescendsFromAMarkedProcessNeedsNoMark) {
  auto table = node_table();
  table.push_back(process(1'000'302, 1'000'301, 1'000'302));  // listed before its parent
  table.push_back(process(1'000'300, kAgent, 1'000'300));
  table.push_back(process(1'000'301, 1'000'300, 1'000'301));
  table.push_back(process(1'000'400, kAgent, 1'000'400));
  EXPECT_THAT(selected(table, shim_container(), {1'000'300}),
              ElementsAre(1'000'300, 1'000'302, 1'000'301));
  EXPECT_THAT(selected(table, shim_container(), {kAgent}), IsEmpty())
      << "the agent's own mark claims nobody";
}

TEST(SelectMembers, ASessionCountsOnlyWhileItIsHeld) {
  auto table = node_table();
  table.push_back(process(1'000'300, 1, 1'000'201));
  Container container = shim_container();
  EXPECT_THAT(selected(table, container), IsEmpty());
  container.sessions = {1'000'201};
  EXPECT_THAT(selected(table, container), ElementsAre(1'000'300));
}

TEST(SelectMembers, ZombiesAndKernelThreadsAreNone) {
  auto table = node_table();
  table.push_back(process(1'000'201, kShim, 1'000'201, 'Z'));
  ProcStat kernel = process(1'000'202, 2, 0);
  kernel.is_kernel_thread = true;
  table.push_back(kernel);
  EXPECT_THAT(selected(table, shim_container(), {1'000'202}), IsEmpty());
}

TEST(SelectMembers, ExcludedProcessesTakeTheirDescendantsOut) {
  auto table = node_table();
  table.push_back(process(1'000'201, kShim, 1'000'201));
  table.push_back(process(1'000'202, 1'000'201, 1'000'201));
  table.push_back(process(1'000'203, kShim, 1'000'203));
  Container container = shim_container();
  container.excluded = {1'000'201};
  EXPECT_THAT(selected(table, container), ElementsAre(1'000'203));
}

TEST(SelectMembers, WhatTheCgroupListsBelongsToTheJob) {
  auto table = node_table();
  table.push_back(process(1'000'300, 1, 1'000'300));
  Container container = shim_container();
  container.listed = {1'000'300, kShim};
  EXPECT_THAT(selected(table, container), ElementsAre(1'000'300));
}

TEST(SelectMembers, LostSupervisorsAndTheirDescendantsAreMembers) {
  std::vector<ProcStat> table = {process(1, 0, 1), process(kAgent, 1, 7),
                                 process(kShim, kAgent, kShim),
                                 process(1'000'201, kShim, 1'000'201)};
  Container container;
  container.job_id = "abc";
  EXPECT_THAT(selected(table, container), IsEmpty());
  EXPECT_THAT(selected(table, container, {}, {kAgent}), ElementsAre(kAgent, kShim, 1'000'201));
}

TEST(SelectMembers, AParentThatIsYoungerThanItsChildIsNone) {
  auto table = node_table();
  ProcStat reused = process(1'000'201, kShim, 1'000'201);
  reused.start_time = 50;
  ProcStat stranger = process(1'000'300, 1'000'201, 1'000'300);
  stranger.start_time = 49;
  ProcStat child = process(1'000'301, 1'000'201, 1'000'301);
  child.start_time = 50;
  table.insert(table.end(), {reused, stranger, child});
  EXPECT_THAT(selected(table, shim_container()), ElementsAre(1'000'201, 1'000'301));
}

std::string words(const std::vector<std::string>& list) { return environ_of(list); }

TEST(IsSupervisor, IsTheJobsAgentOrShimOnThisNode) {
  const std::string id = "0123";
  EXPECT_TRUE(is_supervisor(
      words({"/c/hvd-agent-ab12", "--stdio", "--job", id, "--node", "2", "--marker", "M"}), id, 2));
  EXPECT_TRUE(is_supervisor(words({"hvd-agent", "shim", "--job", id, "--node", "2"}), id, 2));
  const std::vector<std::vector<std::string>> others = {
      {"hvd-agent", "--stdio", "--job", id, "--node", "21"},
      {"hvd-agent", "--stdio", "--job", id + "4", "--node", "2"},
      {"hvd-agent", "reap", "--job", id, "--node", "2"},
      {"hvd-agent", "--stdio", "--marker", "M"},
      {"grep", "--stdio", "--job", id, "--node", "2"},
      {"hvd-agent"},
      {}};
  for (const auto& list : others) {
    EXPECT_FALSE(is_supervisor(words(list), id, 2)) << testing::PrintToString(list);
  }
  EXPECT_FALSE(is_supervisor(words({"hvd-agent", "shim", "--job", "", "--node", "2"}), "", 2));
}

TEST(SelectMembers, ALoopOfParentsInASnapshotEnds) {
  auto table = node_table();
  table.push_back(process(1'000'201, 1'000'202, 1'000'201));
  table.push_back(process(1'000'202, 1'000'201, 1'000'201));
  EXPECT_THAT(selected(table, shim_container()), IsEmpty());
}

class ChildProcess {
 public:
  ChildProcess() : pid_(fork()) {
    if (pid_ == 0) {
      while (true) pause();
    }
  }
  ~ChildProcess() {
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST(SignalProcess, LeavesAReusedPidAlone) {
  const ChildProcess child;
  auto stat = read_stat(child.pid());
  ASSERT_TRUE(stat.has_value());
  ProcStat earlier = *stat;
  earlier.start_time -= 1;
  EXPECT_FALSE(signal_process(earlier, SIGKILL));
  EXPECT_EQ(waitpid(child.pid(), nullptr, WNOHANG), 0) << "it still runs";
  EXPECT_TRUE(signal_process(*stat, 0));
}

TEST(Sweep, StopsThenKillsThenProvesEmptiness) {
  const ChildProcess child;
  Container container;
  container.job_id = "sweep-test";
  container.root = getpid();
  Sweep sweep;
  Nanos now = std::chrono::seconds(1);
  Sweep::Step step = sweep.step(container, true, now);
  EXPECT_FALSE(step.is_empty);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, child.pid(), &info, WSTOPPED | WEXITED | WNOWAIT), 0);
  EXPECT_EQ(info.si_code, CLD_STOPPED);
  EXPECT_FALSE(sweep.has_killed(child.pid()));
  step = sweep.step(container, true, step.next);
  EXPECT_TRUE(sweep.has_killed(child.pid()));
  ASSERT_EQ(waitid(P_PID, child.pid(), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(info.si_status, SIGKILL);
  EXPECT_FALSE(sweep.step(container, true, step.next).is_empty) << "a child is left to reap";
  EXPECT_FALSE(sweep.step(container, false, step.next).is_empty) << "one look is no proof";
  EXPECT_TRUE(sweep.step(container, false, step.next).is_empty);
  EXPECT_EQ(sweep.num_killed(), 1U);
}

TEST(ParseUser, IsTheEffectiveOne) {
  EXPECT_EQ(parse_user("Name:\tx\nUmask:\t0022\nUid:\t1000\t1\t2\t3\nGid:\t4\t5\t6\t7\n"), 1U);
  EXPECT_FALSE(parse_user("Name:\tUid:\t1\t2\n").has_value());
  EXPECT_FALSE(parse_user("").has_value());
}

TEST(ParseListening, TakesPortsOfTheseSocketsThatListen) {
  const std::string table =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
      "inode\n"
      "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
      "11 1\n"
      "   1: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
      "12 1\n"
      "   2: 0100007F:1F92 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 "
      "13 1\n";
  EXPECT_THAT(parse_listening(table, {"11", "13", "99"}), ElementsAre(0x1F90));
  EXPECT_THAT(parse_listening("", {"11"}), IsEmpty());
}

TEST(LookAtThreads, AProcessWhoseFirstThreadHasEndedIsToldByAnother) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    std::thread([&] {
      while (true) pause();
    }).detach();
    [[maybe_unused]] const ssize_t n = write(ready[1], "x", 1);
    syscall(SYS_exit, 0);  // of this thread alone
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  std::optional<ProcStat> stat;
  do {
    stat = read_stat(pid);
  } while (stat && stat->state != 'Z');
  ASSERT_TRUE(stat.has_value());
  const auto told = look_at_threads(*stat);
  ASSERT_TRUE(told.has_value());
  EXPECT_NE(told->state, 'Z');
  EXPECT_NE(told->thread, 0);
  ::kill(pid, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(look_at_threads(*stat).has_value()) << "nobody lives any more";
  waitpid(pid, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST(DescribeSurvivor, NamesTheProcess) {
  const ChildProcess child;
  const auto stat = read_stat(child.pid());
  ASSERT_TRUE(stat.has_value());
  const auto survivor = describe_survivor(*stat);
  EXPECT_EQ(survivor.pid(), child.pid());
  EXPECT_EQ(survivor.uid(), geteuid());
  EXPECT_THAT(survivor.command(), testing::HasSubstr("shim_unit_test"));
}

}  // namespace
}  // namespace hvd
