#include "launcher/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<HostSpec> hosts_of(std::string_view text) { return *parse_hosts(text, nullptr); }

// "rank host local_rank/local_size cross_rank/cross_size node/num_nodes" of each rank.
std::vector<std::string> brief(const Plan& plan) {
  std::vector<std::string> lines;
  for (const RankPlace& p : plan.ranks) {
    EXPECT_EQ(p.size, plan.ranks.size());
    lines.push_back(fmt::format("{} {} {}/{} {}/{} {}/{}", p.rank, p.host, p.local_rank,
                                p.local_size, p.cross_rank, p.cross_size, p.node, p.num_nodes));
  }
  return lines;
}

TEST(Plan, RanksFollowHostsInBlocks) {
  const auto plan = make_plan(hosts_of("node2:2,node1:2"), std::nullopt);
  ASSERT_TRUE(plan);
  EXPECT_THAT(brief(*plan), ElementsAre("0 node2 0/2 0/2 0/2", "1 node2 1/2 0/2 0/2",
                                        "2 node1 0/2 1/2 1/2", "3 node1 1/2 1/2 1/2"));
  EXPECT_THAT(plan->notes, IsEmpty());
  EXPECT_THAT(plan->nodes[1].ranks, ElementsAre(2, 3));
}

TEST(Plan, CrossSizesDifferWithUnequalSlots) {
  const auto plan = make_plan(hosts_of("a:1,b:3,c:2"), std::nullopt);
  ASSERT_TRUE(plan);
  EXPECT_THAT(brief(*plan), ElementsAre("0 a 0/1 0/3 0/3", "1 b 0/3 1/3 1/3", "2 b 1/3 0/2 1/3",
                                        "3 b 2/3 0/1 1/3", "4 c 0/2 2/3 2/3", "5 c 1/2 1/2 2/3"));
}

TEST(Plan, CyclicRanksGoRoundTheHosts) {
  const auto plan = make_plan(hosts_of("a:1,b:3,c:2"), std::nullopt, "", RankOrder::kCyclic);
  ASSERT_TRUE(plan);
  EXPECT_THAT(brief(*plan), ElementsAre("0 a 0/1 0/3 0/3", "1 b 0/3 1/3 1/3", "2 c 0/2 2/3 2/3",
                                        "3 b 1/3 0/2 1/3", "4 c 1/2 1/2 2/3", "5 b 2/3 0/1 1/3"));
  EXPECT_THAT(plan->nodes[1].ranks, ElementsAre(1, 3, 5));
}

TEST(Plan, CyclicRanksSpreadOverTheHostsWhenThereAreFewer) {
  const auto plan = make_plan(hosts_of("a:4,b:4"), 3, "", RankOrder::kCyclic);
  ASSERT_TRUE(plan);
  EXPECT_THAT(brief(*plan), ElementsAre("0 a 0/2 0/2 0/2", "1 b 0/1 1/2 1/2", "2 a 1/2 0/1 0/2"));
  EXPECT_THAT(plan->notes, ElementsAre("-np 3 of 8 slots: a x2, b x1"));
  const auto one = make_plan(hosts_of("a:4,b:4"), 1, "", RankOrder::kCyclic);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->nodes.size(), 1U);
}

TEST(Plan, CyclicNeedsAllSlotsToBeKnown) {
  EXPECT_FALSE(can_plan_without_hellos(hosts_of("a:2,b"), 2, RankOrder::kCyclic));
  EXPECT_FALSE(make_plan(hosts_of("a:2,b"), 2, "", RankOrder::kCyclic));
  EXPECT_TRUE(can_plan_without_hellos(hosts_of("a:2,b:1"), 2, RankOrder::kCyclic));
}

TEST(Plan, FewerRanksThanSlotsIsTold) {
  const auto plan = make_plan(hosts_of("node1:2,node2:2"), 3);
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->notes, ElementsAre("-np 3 of 4 slots: node1 x2, node2 x1"));
  EXPECT_TRUE(plan->leaves_slots);
  EXPECT_FALSE(make_plan(hosts_of("node1:2,node2"), 2)->leaves_slots);
  EXPECT_EQ(plan->ranks[2].local_size, 1U);
  EXPECT_EQ(plan->ranks[1].cross_size, 1U);
}

TEST(Plan, HostsWithoutARankAreDroppedAndTold) {
  const auto plan = make_plan(hosts_of("node1:2,node2:2,node3"), 2);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->nodes.size(), 1U);
  EXPECT_EQ(plan->ranks[0].num_nodes, 1U);
  EXPECT_THAT(plan->notes, ElementsAre("-np 2: node1 x2",
                                       "left out because no rank falls to them: node2, node3"));
}

TEST(Plan, MoreRanksThanSlotsIsUsage) {
  const auto listed = make_plan(hosts_of("node1:2,node2:2"), 5);
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ExitCode::kUsage);
  EXPECT_THAT(listed.error().message,
              HasSubstr("-np 5 is more than the 4 slots of -H node1:2,node2:2; "));
  const auto from_file = make_plan(hosts_of("node1:2"), 5, "--hostfile hosts");
  ASSERT_FALSE(from_file);
  EXPECT_THAT(from_file.error().message, HasSubstr("the 2 slots of --hostfile hosts; "));
}

TEST(Plan, UnknownSlotsNeedHellosOnlyWhereRanksFallToThem) {
  EXPECT_TRUE(can_plan_without_hellos(hosts_of("a:2,b:2"), std::nullopt));
  EXPECT_TRUE(can_plan_without_hellos(hosts_of("a:2,b:2"), 9));
  EXPECT_TRUE(can_plan_without_hellos(hosts_of("a:2,b"), 2));
  EXPECT_FALSE(can_plan_without_hellos(hosts_of("a:2,b"), 3));
  EXPECT_FALSE(can_plan_without_hellos(hosts_of("a,b:8"), 1));
  EXPECT_FALSE(can_plan_without_hellos(hosts_of("a"), std::nullopt));
  EXPECT_FALSE(make_plan(hosts_of("a:2,b"), 3));
}

TEST(Plan, GpuCountsFillUnknownSlotsOnly) {
  const auto hosts = with_gpu_counts(hosts_of("a,b:3,c"), {8, 8, 0});
  EXPECT_EQ(hosts[0].slots, 8U);
  EXPECT_EQ(hosts[1].slots, 3U);
  EXPECT_EQ(hosts[2].slots, 1U);
  EXPECT_EQ(make_plan(hosts, std::nullopt)->ranks.size(), 12U);
}

TEST(Plan, RefusesEmptyAndAbsurdJobs) {
  EXPECT_FALSE(make_plan({}, 1));
  std::vector<HostSpec> many(32, HostSpec{.name = "n", .slots = 65536});
  const auto plan = make_plan(many, std::nullopt);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ExitCode::kUsage);
}

TEST(Plan, AThousandHostsStayInOrder) {
  std::vector<HostSpec> hosts;
  for (int i = 0; i < 1000; ++i) hosts.push_back({.name = fmt::format("n{}", i), .slots = 8});
  const auto plan = make_plan(hosts, std::nullopt);
  ASSERT_TRUE(plan);
  for (std::uint32_t rank = 0; rank < 8000; ++rank) {
    const RankPlace& place = plan->ranks[rank];
    ASSERT_EQ(place.rank, rank);
    ASSERT_EQ(place.node, rank / 8);
    ASSERT_EQ(place.cross_rank, rank / 8);
    ASSERT_EQ(place.cross_size, 1000U);
  }
}

}  // namespace
}  // namespace hvd
