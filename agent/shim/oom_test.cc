#include "agent/shim/oom.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace hvd {
namespace {

namespace fs = std::filesystem;

TEST(Oom, ReadsOneCounterOfMany) {
  const char* events = "low 0\nhigh 7\noom 2\noom_kill 3\noom_group_kill 1\n";
  EXPECT_EQ(parse_counter(events, "oom_kill"), 3U);
  EXPECT_EQ(parse_counter(events, "oom"), 2U);
  EXPECT_EQ(parse_counter("oom_kill x\n", "oom_kill"), std::nullopt);
  EXPECT_EQ(parse_counter("oom_kill", "oom_kill"), std::nullopt);
  EXPECT_EQ(parse_counter("", "oom_kill"), std::nullopt);
}

// A folder that looks like the cgroup file system.
class OomInFolder : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(root_.data()), nullptr); }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& group, int kills) const {
    fs::create_directories(root_ + group);
    std::ofstream(root_ + group + "/memory.events") << "oom 9\noom_kill " << kills << '\n';
  }
  std::string root_ = fs::temp_directory_path() / "hvdrun_oom_XXXXXX";
};

TEST_F(OomInFolder, TellsWhatHasRisenSinceTheStart) {
  write("/job/rank3", 4);
  const OomCounter counter = OomCounter::in(root_, "/job/rank3");
  EXPECT_EQ(counter.group(), "/job/rank3");
  EXPECT_EQ(counter.facts(true).kills(), 0U);
  write("/job/rank3", 6);
  EXPECT_EQ(counter.facts(true).kills(), 2U);
  EXPECT_TRUE(counter.facts(true).is_own());
  EXPECT_FALSE(counter.facts(false).is_own());
  fs::remove_all(root_ + "/job/rank3");
  EXPECT_FALSE(counter.facts(true).is_counted());
}

TEST_F(OomInFolder, TheNearestGroupThatCountsMemoryIsTaken) {
  fs::create_directories(root_ + "/scope/job/rank3");
  write("/scope", 1);
  EXPECT_EQ(OomCounter::in(root_, "/scope/job/rank3").group(), "/scope");
}

TEST_F(OomInFolder, WithoutACountingGroupOnlyTheNodeIsCounted) {
  const OomCounter counter = OomCounter::of(getpid(), root_);
  EXPECT_EQ(counter.group(), "");
  const auto facts = counter.facts(true);
  EXPECT_FALSE(facts.is_counted());
  EXPECT_FALSE(facts.is_own());
  EXPECT_TRUE(facts.is_node_counted());
}

}  // namespace
}  // namespace hvd
