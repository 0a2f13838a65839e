#include "agent/shim/remains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace hvd {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(PidInName, IsTheFirstNumberThatStandsByItself) {
  EXPECT_EQ(pid_in_name("torch_4711_3812_0"), 4711);
  EXPECT_EQ(pid_in_name("nccl-shm-recv-12-5"), 12);
  EXPECT_EQ(pid_in_name("job.77"), 77);
  EXPECT_EQ(pid_in_name("42"), 42);
}

TEST(PidInName, IsNothingInOtherNames) {
  for (const char* name :
       {"", "nccl-x8Qz1A", "sem.mp-ab12", "psm_0f3a", "a4711", "99999999999", "-", "0", "x_0_y"}) {
    EXPECT_EQ(pid_in_name(name), 0) << name;
  }
}

TEST(IsRemovableSegment, IsWhatNcclAndTorchName) {
  EXPECT_TRUE(is_removable_segment("torch_1_2_3"));
  EXPECT_TRUE(is_removable_segment("nccl-shm-1"));
  EXPECT_FALSE(is_removable_segment("psm_1"));
  EXPECT_FALSE(is_removable_segment("my-torch_1"));
}

class ClearRemains : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/hvdrun-remains-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
    fs::create_directories(root_ / "shm");
    fs::create_directories(root_ / "tmp");
    dead_ = fork();
    if (dead_ == 0) _exit(0);
    waitpid(dead_, nullptr, 0);
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path touch(const std::string& folder, const std::string& before, pid_t pid) const {
    const fs::path path = root_ / folder / (before + std::to_string(pid) + "_7");
    std::ofstream(path) << "x";
    return path;
  }
  [[nodiscard]] std::vector<std::string> clear(const DeadProcesses& dead, Nanos since) const {
    return clear_remains(root_ / "shm", root_ / "tmp", dead, since);
  }

  fs::path root_;
  pid_t dead_ = 0;
};

TEST_F(ClearRemains, SegmentsOfDeadWorkersGoAndTheRestIsTold) {
  const fs::path segment = touch("shm", "torch_", dead_);
  const fs::path other = touch("shm", "mine_", dead_);
  const fs::path in_tmp = touch("tmp", "torch_", dead_);
  const auto told = clear({{dead_}, {}}, Nanos(0));
  EXPECT_FALSE(fs::exists(segment));
  EXPECT_TRUE(fs::exists(other));
  EXPECT_TRUE(fs::exists(in_tmp));
  EXPECT_THAT(told, ElementsAre(HasSubstr(other.string()), HasSubstr(in_tmp.string())));
}

TEST_F(ClearRemains, ASegmentOfAnotherDeadProcessOfTheJobIsOnlyTold) {
  const fs::path segment = touch("shm", "torch_", dead_);
  EXPECT_THAT(clear({{}, {dead_}}, Nanos(0)), ElementsAre(HasSubstr(segment.string())));
  EXPECT_TRUE(fs::exists(segment));
}

TEST_F(ClearRemains, WhatMayBeSomebodyElsesIsLeftAlone) {
  const fs::path of_stranger = touch("shm", "torch_", dead_);
  const fs::path of_living = touch("shm", "torch_", getpid());
  EXPECT_THAT(clear({{getpid()}, {}}, Nanos(0)), IsEmpty()) << "its pid is not dead";
  EXPECT_THAT(clear({{dead_}, {}}, realtime_now() + std::chrono::hours(1)), IsEmpty())
      << "it stood there before the job";
  EXPECT_TRUE(fs::exists(of_stranger));
  EXPECT_TRUE(fs::exists(of_living));
}

}  // namespace
}  // namespace hvd
