#include "agent/cpu_binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Wanted = std::vector<std::optional<int>>;

// Two sockets of 16 cores with two threads each: CPUs 0-15 and 32-47, 16-31 and 48-63.
std::vector<NumaNode> two_sockets() {
  std::vector<NumaNode> nodes = {{0, {}}, {1, {}}};
  for (int core = 0; core < 32; ++core) {
    nodes[static_cast<std::size_t>(core / 16)].cores.push_back({core, core + 32});
  }
  return nodes;
}

std::vector<std::string> texts(const std::vector<Binding>& bindings) {
  std::vector<std::string> result;
  for (const Binding& binding : bindings) {
    result.push_back(std::to_string(binding.numa_node) + ":" + format_cpus(binding.cpus));
  }
  return result;
}

TEST(CpuBinding, EightGpusOnTwoSocketsGetTheirSideOfTheMachine) {
  const Wanted gpus = {0, 0, 0, 0, 1, 1, 1, 1};
  EXPECT_THAT(texts(decide_bindings(two_sockets(), BindMode::kCore, gpus)),
              ElementsAre("0:0-3,32-35", "0:4-7,36-39", "0:8-11,40-43", "0:12-15,44-47",
                          "1:16-19,48-51", "1:20-23,52-55", "1:24-27,56-59", "1:28-31,60-63"));
  for (const Binding& binding : decide_bindings(two_sockets(), BindMode::kNuma, gpus)) {
    EXPECT_EQ(format_cpus(binding.cpus), binding.numa_node == 0 ? "0-15,32-47" : "16-31,48-63");
  }
}

TEST(CpuBinding, OrderOfGpusNeedNotBeThatOfSockets) {
  const auto bindings = decide_bindings(two_sockets(), BindMode::kCore, {1, 0});
  EXPECT_THAT(texts(bindings), ElementsAre("1:16-31,48-63", "0:0-15,32-47"));
}

TEST(CpuBinding, WithoutGpusRanksAreSpreadInBlocks) {
  EXPECT_THAT(texts(decide_bindings(two_sockets(), BindMode::kCore, Wanted(4))),
              ElementsAre("0:0-7,32-39", "0:8-15,40-47", "1:16-23,48-55", "1:24-31,56-63"));
  EXPECT_THAT(texts(decide_bindings(two_sockets(), BindMode::kNuma, Wanted(1))),
              ElementsAre("0:0-15,32-47"));
  std::vector<NumaNode> uneven = {{0, {{0}, {1}, {2}}}, {1, {{3}}}};
  EXPECT_THAT(texts(decide_bindings(uneven, BindMode::kCore, Wanted(4))),
              ElementsAre("0:0", "0:1", "0:2", "1:3"));
}

TEST(CpuBinding, ACpusetIsNeverLeft) {
  const std::vector<NumaNode> limited = {{0, {{2}, {3}}}, {1, {}}};
  const auto bindings = decide_bindings(limited, BindMode::kCore, {1, 1, std::nullopt});
  const std::set<int> allowed = {2, 3};
  for (const Binding& binding : bindings) {
    EXPECT_FALSE(binding.cpus.empty());
    for (const int cpu : binding.cpus) EXPECT_TRUE(allowed.contains(cpu));
    EXPECT_EQ(binding.numa_node, 0);
  }
}

TEST(CpuBinding, MoreRanksThanCoresShareThem) {
  const std::vector<NumaNode> small = {{0, {{0, 2}, {1, 3}}}};
  EXPECT_THAT(texts(decide_bindings(small, BindMode::kCore, Wanted(4))),
              ElementsAre("0:0,2", "0:0,2", "0:1,3", "0:1,3"));
}

TEST(CpuBinding, NothingIsBoundWithoutAModeOrACpu) {
  EXPECT_THAT(decide_bindings(two_sockets(), BindMode::kNone, {0})[0].cpus, IsEmpty());
  EXPECT_THAT(decide_bindings({}, BindMode::kCore, {0})[0].cpus, IsEmpty());
  EXPECT_EQ(decide_bindings({}, BindMode::kCore, {0})[0].numa_node, -1);
}

TEST(CpuBinding, ListsAreThoseOfTheKernel) {
  EXPECT_EQ(format_cpus({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(format_cpus({}), "");
  EXPECT_THAT(parse_cpus("0-2,5,7-8\n"), ElementsAre(0, 1, 2, 5, 7, 8));
  for (const char* wrong : {"", "a", "3-1", "0-", "-1", "0,,1", "0-99999999"}) {
    EXPECT_THAT(parse_cpus(wrong), IsEmpty()) << wrong;
  }
}

}  // namespace
}  // namespace hvd
