#include "agent/own_children.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

namespace hvd {
namespace {

pid_t start_sleeper() {
  const pid_t pid = fork();
  if (pid == 0) {
    pause();
    _exit(0);
  }
  return pid;
}

// Ended, but not reaped.
void end(pid_t pid) {
  kill(pid, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
}

bool is_our_child(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT | WNOHANG) == 0;
}

TEST(OwnChildren, ReapsStraysAndTellsOfLivingOnes) {
  Loop loop;
  const OwnChildren& children = OwnChildren::of(loop);
  EXPECT_FALSE(children.reap_strays());
  const pid_t stray = start_sleeper();
  EXPECT_TRUE(children.reap_strays());
  EXPECT_FALSE(OwnChildren::has_dead_one());
  end(stray);
  EXPECT_TRUE(OwnChildren::has_dead_one());
  EXPECT_FALSE(children.reap_strays());
  EXPECT_FALSE(is_our_child(stray));
}

TEST(OwnChildren, LeavesThoseThatAreWantedAlone) {
  Loop loop;
  const OwnChildren& children = OwnChildren::of(loop);
  const pid_t pid = start_sleeper();
  std::optional<OwnChild> child(std::in_place, loop, pid);
  EXPECT_TRUE(children.pids().contains(pid));
  EXPECT_FALSE(children.reap_strays());
  end(pid);
  EXPECT_FALSE(children.reap_strays());
  EXPECT_TRUE(is_our_child(pid)) << "whoever wants it reaps it";
  child.reset();
  EXPECT_FALSE(children.reap_strays());
  EXPECT_FALSE(is_our_child(pid));
}

}  // namespace
}  // namespace hvd
