#include "agent/shim/job_cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "base/sys.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(ParseOwnCgroup, TakesTheLineWithoutAController) {
  EXPECT_EQ(parse_own_cgroup("0::/user.slice/a b\n"), "/user.slice/a b");
  EXPECT_EQ(parse_own_cgroup("9:name=systemd:/x\n4:memory:/y\n0::/\n"), "/");
  EXPECT_EQ(parse_own_cgroup("0::/no/newline"), "/no/newline");
}

TEST(ParseOwnCgroup, IsNothingWithoutV2OrOutsideOfOurView) {
  for (const char* text : {"", "4:memory:/y\n", "0::/../..\n", "0::/a/../b\n", "10::/x\n"}) {
    EXPECT_FALSE(parse_own_cgroup(text).has_value()) << text;
  }
}

TEST(IsPopulatedIn, ReadsTheKernelsWord) {
  EXPECT_TRUE(is_populated_in("populated 1\nfrozen 0\n"));
  EXPECT_FALSE(is_populated_in("populated 0\nfrozen 1\n"));
}

TEST(JobCgroupName, HoldsJobAndNode) { EXPECT_EQ(job_cgroup_name("abc", 12), "hvd-abc-n12"); }

TEST(JobCgroup, APlainFolderIsNone) {
  char parent[] = "/tmp/hvdrun-cgroup-test-XXXXXX";
  ASSERT_NE(mkdtemp(parent), nullptr);
  EXPECT_FALSE(JobCgroup::make(parent, "abc", 0).has_value());
  EXPECT_TRUE(fs::is_empty(parent)) << "nothing stays behind";
  fs::remove(parent);
  EXPECT_FALSE(JobCgroup::make("/nowhere", "abc", 0).has_value());
}

// Below our own cgroup, where this machine lets us.
class RealCgroup : public testing::Test {
 protected:
  void SetUp() override {
    auto parent = own_cgroup();
    if (!parent) GTEST_SKIP() << parent.error().message;
    parent_ = *parent;
    auto made = JobCgroup::make(parent_, name_, 3);
    if (!made) GTEST_SKIP() << made.error().message;
    cgroup_.emplace(std::move(*made));
  }
  void TearDown() override {
    if (!cgroup_) return;
    cgroup_->kill();
    for (const pid_t pid : children_) waitpid(pid, nullptr, 0);
    EXPECT_TRUE(cgroup_->wait_empty(seconds(5)));
    cgroup_->remove();
  }

  // A child that is born in the leaf, forks once and waits.
  pid_t start_in(const std::string& leaf) {
    const UniqueFd folder = cgroup_->make_leaf(leaf);
    EXPECT_TRUE(folder.is_valid());
    int pidfd = -1;
    const pid_t pid = sys::fork_with_pidfd(&pidfd, folder.get());
    if (pid == 0) {
      (void)setsid();
      while (true) pause();
    }
    EXPECT_GT(pid, 0);
    const UniqueFd closed(pidfd);
    children_.push_back(pid);
    return pid;
  }

  std::string parent_;
  const std::string name_ = "test" + std::to_string(getpid());
  std::optional<JobCgroup> cgroup_;
  std::vector<pid_t> children_;
};

TEST_F(RealCgroup, AChildIsBornInItsLeafAndDiesByTheKill) {
  EXPECT_FALSE(cgroup_->is_populated());
  const pid_t child = start_in("rank0");
  EXPECT_TRUE(cgroup_->is_populated());
  EXPECT_THAT(cgroup_->pids(), ElementsAre(child));
  EXPECT_FALSE(cgroup_->wait_empty(std::chrono::milliseconds(1)));
  EXPECT_FALSE(cgroup_->remove()) << "it is in use";
  ASSERT_TRUE(cgroup_->kill());
  EXPECT_TRUE(cgroup_->wait_empty(seconds(5)));
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, child, &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(info.si_status, SIGKILL);
  EXPECT_TRUE(cgroup_->remove()) << "a zombie does not hold it";
  EXPECT_FALSE(fs::exists(cgroup_->path()));
}

TEST_F(RealCgroup, IsFoundByJobAndNodeAlone) {
  EXPECT_THAT(find_job_cgroups(parent_, name_, 3), Contains(cgroup_->path()));
  EXPECT_THAT(find_job_cgroups(parent_, name_, 4), IsEmpty());
  EXPECT_THAT(find_job_cgroups("", name_, 3), IsEmpty());
}

TEST_F(RealCgroup, WhatADeadJobOfTheSameNameLeftIsKilledFirst) {
  const pid_t child = start_in("rank0");
  const auto again = JobCgroup::make(parent_, name_, 3);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, child, &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(info.si_status, SIGKILL);
  EXPECT_FALSE(again->is_populated());
  EXPECT_FALSE(fs::exists(again->path() + "/rank0"));
  EXPECT_TRUE(again->remove());
}

}  // namespace
}  // namespace hvd
