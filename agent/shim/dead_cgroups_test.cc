#include "agent/shim/dead_cgroups.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "agent/shim/job_cgroup.h"
#include "base/sys.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using std::chrono::seconds;

TEST(IsJobCgroupName, OnlyWhatAShimMakes) {
  const std::string job(32, 'a');
  EXPECT_TRUE(is_job_cgroup_name(job_cgroup_name(job, 0)));
  EXPECT_TRUE(is_job_cgroup_name(job_cgroup_name(job, 1023)));
  for (const std::string& name :
       {std::string(), std::string("hvd-"), "hvd-" + job, "hvd-" + job + "-n", "hvd-" + job + "-nx",
        "hvd-" + job + "-n1-check.scope", "hvd-" + job + "a-n1", "hvd-" + job.substr(1) + "-n1",
        "hvd-" + std::string(32, 'A') + "-n1", "hvd-" + job + "-n01", "xhvd-" + job + "-n1"}) {
    EXPECT_FALSE(is_job_cgroup_name(name)) << name;
  }
}

// Below our own cgroup, where this machine lets us.
class DeadCgroups : public testing::Test {
 protected:
  void SetUp() override {
    const auto own = own_cgroup();
    if (!own) GTEST_SKIP() << own.error().message;
    parent_ = *own + "/dead-test" + std::to_string(getpid());
    std::error_code error;
    if (!fs::create_directory(parent_, error)) GTEST_SKIP() << error.message();
    auto made = JobCgroup::make(parent_, job_, 1);
    if (!made) GTEST_SKIP() << made.error().message;
    cgroup_.emplace(std::move(*made));
    path_ = cgroup_->path();
    EXPECT_TRUE(cgroup_->make_leaf("rank0").is_valid());
  }
  void TearDown() override {
    for (const std::string& folder : {path_ + "/rank0", path_, parent_}) rmdir(folder.c_str());
  }
  void forget() { cgroup_.reset(); }

  const std::string job_ = std::string(32, 'b');
  std::string parent_;
  std::string path_;
  std::optional<JobCgroup> cgroup_;
};

TEST_F(DeadCgroups, AnEmptyOneIsRemovedWithItsLeaves) {
  forget();
  remove_dead_cgroups(parent_, seconds(0));
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(DeadCgroups, OneThatAShimHoldsStaysThoughItIsEmpty) {
  remove_dead_cgroups(parent_, seconds(0));
  EXPECT_TRUE(fs::exists(path_ + "/rank0"));
}

TEST_F(DeadCgroups, AYoungOneStays) {
  forget();
  remove_dead_cgroups(parent_, hours(1));
  EXPECT_TRUE(fs::exists(path_ + "/rank0"));
}

TEST_F(DeadCgroups, OneWithAProcessStays) {
  int number = -1;
  const pid_t child = sys::fork_with_pidfd(&number, cgroup_->make_leaf("rank0").get());
  if (child == 0) {
    while (true) pause();
  }
  ASSERT_GT(child, 0);
  const UniqueFd pidfd(number);
  forget();
  remove_dead_cgroups(parent_, seconds(0));
  EXPECT_TRUE(fs::exists(path_ + "/rank0"));
  kill(child, SIGKILL);
  siginfo_t info{};
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED), 0);
}

TEST_F(DeadCgroups, OtherNamesAreNobodysBusiness) {
  forget();
  const std::string other = parent_ + "/hvd-notes-n1";
  ASSERT_TRUE(fs::create_directory(other));
  remove_dead_cgroups(parent_, seconds(0));
  EXPECT_EQ(rmdir(other.c_str()), 0) << "it was still there";
  remove_dead_cgroups("/nowhere", seconds(0));
}

}  // namespace
}  // namespace hvd
