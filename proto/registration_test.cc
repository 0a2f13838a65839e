#include "proto/registration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <functional>

#include "proto/registration_table.h"

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Ranks = std::vector<v1::Registration>;

// `num_nodes` nodes with two ranks and two GPUs each, equal in everything.
Ranks ranks_of(std::uint32_t num_nodes) {
  Ranks ranks;
  for (std::uint32_t i = 0; i < 2 * num_nodes; ++i) {
    v1::Registration& rank = ranks.emplace_back();
    rank.set_rank(i);
    rank.set_size(2 * num_nodes);
    rank.set_local_rank(i % 2);
    rank.set_host(fmt::format("node{}", i / 2 + 1));
    rank.set_pid(static_cast<int>(1000 + i));
    rank.set_runtime_version("0.1.0");
    rank.set_torch_version("2.11.0");
    rank.set_nccl_version("2.28.9");
    rank.set_cuda_version("13.0");
    rank.set_driver_version("13.0");
    rank.set_gpu_name("H200");
    rank.set_gpu_uuid(fmt::format("GPU-{}", i));
    rank.set_gpu_bus_id(fmt::format("0000:0{}:00.0", i % 2));
    rank.set_plan("model=r50 batch=1");
    rank.set_plan_hash(7);
    rank.set_num_rdma_devices(8);
  }
  return ranks;
}

TEST(Registration, EqualRanksFitWithoutAWord) {
  for (const std::uint32_t num_nodes : {1u, 2u, 3u, 512u}) {
    const auto verdict = check_registrations(ranks_of(num_nodes));
    EXPECT_FALSE(verdict.refusal) << verdict.refusal->headline;
    EXPECT_THAT(verdict.warnings, IsEmpty());
  }
  EXPECT_FALSE(check_registrations({}).refusal);
}

TEST(Registration, AnotherNcclIsShownInATableOfFoldedNodes) {
  Ranks ranks = ranks_of(3);
  ranks[2].set_nccl_version("2.27.3");
  ranks[3].set_nccl_version("2.27.3");
  const auto refusal = check_registrations(ranks).refusal;
  ASSERT_TRUE(refusal);
  EXPECT_EQ(
      refusal->headline,
      "the ranks do not fit together: NCCL version differs (2.28.9 on node1, node3; 2.27.3 on "
      "node2)");
  EXPECT_THAT(refusal->table,
              ElementsAre("nodes                   NCCL version", "node1, node3 (4 ranks)  2.28.9",
                          "node2 (2 ranks)         2.27.3", HasSubstr("LD_LIBRARY_PATH")));
}

TEST(Registration, ATableOfManyNodesStaysShort) {
  Ranks ranks = ranks_of(512);
  for (std::size_t i = 0; i < ranks.size(); i += 4) ranks[i].set_nccl_version("2.27.3");
  const auto refusal = check_registrations(ranks).refusal;
  ASSERT_TRUE(refusal);
  ASSERT_EQ(refusal->table.size(), 4u);
  for (const std::string& line : refusal->table) EXPECT_LT(line.size(), 600u);
  EXPECT_THAT(refusal->table[1], HasSubstr("and "));
}

TEST(Registration, ASplitNodeIsNamedWithItsRanks) {
  Ranks ranks = ranks_of(2);
  ranks[3].set_nccl_version("2.27.3");
  const auto refusal = check_registrations(ranks).refusal;
  ASSERT_TRUE(refusal);
  EXPECT_THAT(refusal->table[1], HasSubstr("node1, node2 rank 2 (3 ranks)"));
  EXPECT_THAT(refusal->table[2], HasSubstr("node2 rank 3 (1 rank)"));
}

TEST(Registration, OfPlansOnlyTheDifferingWordsAreShown) {
  Ranks ranks = ranks_of(2);
  ranks[1].set_plan("model=r50 batch=2");
  ranks[1].set_plan_hash(8);
  auto refusal = check_registrations(ranks).refusal;
  ASSERT_TRUE(refusal);
  EXPECT_THAT(refusal->headline,
              HasSubstr("batch=1 on node1 rank 0, node2; batch=2 on node1 rank 1"));
  EXPECT_THAT(refusal->headline, Not(HasSubstr("r50")));
  // The words say nothing, the hash does.
  ranks[1].set_plan(ranks[0].plan());
  refusal = check_registrations(ranks).refusal;
  ASSERT_TRUE(refusal);
  EXPECT_THAT(refusal->headline, HasSubstr("0000000000000007 on"));
}

TEST(Registration, WhatMustAndWhatMayDiffer) {
  const struct {
    const char* name;
    std::function<void(v1::Registration&)> change;
    bool is_refused;
    const char* said;  // nullptr: not a word
  } cases[] = {
      {"runtime, major", [](auto& r) { r.set_runtime_version("1.0.0"); }, true, "hvdrun version"},
      {"runtime, minor", [](auto& r) { r.set_runtime_version("0.2.0"); }, false, nullptr},
      {"plan", [](auto& r) { r.set_plan_hash(9); }, true, "plan differs"},
      {"no NCCL", [](auto& r) { r.clear_nccl_version(); }, true, "none on node1 rank 1"},
      {"driver", [](auto& r) { r.set_driver_version("12.8"); }, false, "nodes: driver ("},
      {"CUDA", [](auto& r) { r.set_cuda_version("12.8"); }, false, "nodes: CUDA ("},
      {"torch", [](auto& r) { r.set_torch_version("2.10.0"); }, false, "nodes: torch ("},
      {"settings", [](auto& r) { r.add_nccl_settings("NCCL_ALGO=Ring"); }, false, "NCCL_ALGO=Ring"},
      {"RDMA", [](auto& r) { r.set_num_rdma_devices(7); }, false, "nodes: RDMA devices ("},
      {"GPU's name", [](auto& r) { r.set_gpu_name("H100"); }, false, nullptr},
      {"limits", [](auto& r) { r.set_nofile_soft(256); }, false, nullptr},
  };
  for (const auto& c : cases) {
    Ranks ranks = ranks_of(2);
    c.change(ranks[1]);
    const auto verdict = check_registrations(ranks);
    EXPECT_EQ(verdict.refusal.has_value(), c.is_refused) << c.name;
    std::string said = verdict.refusal ? verdict.refusal->headline : "";
    said += fmt::format("{}", fmt::join(verdict.warnings, "\n"));
    if (c.said != nullptr) {
      EXPECT_THAT(said, HasSubstr(c.said)) << c.name;
    } else {
      EXPECT_EQ(said, "") << c.name;
    }
  }
}

TEST(Registration, SeveralDifferencesShareOneTable) {
  Ranks ranks = ranks_of(2);
  ranks[2].set_nccl_version("2.27.3");
  ranks[2].set_plan_hash(8);
  ranks[2].set_cuda_version("12.8");
  ranks[2].set_num_rdma_devices(1);
  const auto verdict = check_registrations(ranks);
  ASSERT_TRUE(verdict.refusal);
  EXPECT_EQ(verdict.refusal->headline,
            "the ranks do not fit together: NCCL version and plan differ");
  EXPECT_EQ(verdict.refusal->table.size(), 5u);  // heading, two rows, two remedies
  ASSERT_EQ(verdict.warnings.size(), 1u);
  EXPECT_THAT(verdict.warnings[0], HasSubstr("not the same on all nodes: CUDA and RDMA devices ("));
}

TEST(Registration, RanksOnOneGpuAreRefusedUnlessTheyMeanIt) {
  Ranks ranks = ranks_of(2);
  ranks[3].set_gpu_uuid("GPU-2");
  auto refusal = check_registrations(ranks).refusal;
  ASSERT_TRUE(refusal);
  EXPECT_EQ(
      refusal->headline,
      "several ranks use one GPU: node2: ranks 2, 3 share GPU GPU-2 (H200, 0000:00:00.0); the "
      "node has 2 ranks of this job on 1 GPU");
  EXPECT_THAT(refusal->table.back(), HasSubstr("-H NODE:SLOTS"));
  ranks[2].set_may_share_gpu(true);
  EXPECT_TRUE(check_registrations(ranks).refusal) << "one of them does not";
  ranks[3].set_may_share_gpu(true);
  EXPECT_FALSE(check_registrations(ranks).refusal);
}

TEST(Registration, TheSameGpuNameOnTwoHostsIsNoSharing) {
  Ranks ranks = ranks_of(2);
  ranks[2].set_gpu_uuid("GPU-0");
  EXPECT_FALSE(check_registrations(ranks).refusal);
}

TEST(Registration, RanksOnTheCpuShareNothing) {
  Ranks ranks = ranks_of(2);
  for (auto& rank : ranks) rank.clear_gpu_uuid();
  EXPECT_FALSE(check_registrations(ranks).refusal);
}

TEST(Registration, TheSameRankOfAnotherProcessIsNamedWithBoth) {
  const Ranks ranks = ranks_of(2);
  v1::Registration twin = ranks[1];
  EXPECT_FALSE(check_pair(ranks[1], twin)) << "the same process";
  twin.set_pid(77);
  twin.set_host("node9");
  const auto refusal = check_pair(ranks[1], twin);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->headline, "rank 1 came twice: pid 1001 on node1 and pid 77 on node9");
}

TEST(Registration, RanksMustAgreeHowManyTheyAre) {
  const Ranks ranks = ranks_of(2);
  v1::Registration other = ranks[1];
  other.set_size(6);
  const auto refusal = check_pair(ranks[0], other);
  ASSERT_TRUE(refusal);
  EXPECT_THAT(refusal->headline,
              HasSubstr("rank 0 (pid 1000 on node1) expects 4 ranks, rank 1 (pid "
                        "1001 on node1) expects 6 ranks"));
  other.set_rank(6);
  ASSERT_TRUE(check_alone(other));
  EXPECT_FALSE(check_alone(ranks[0]));
}

TEST(RegistrationTable, RanksInARowAreFolded) {
  EXPECT_EQ(rank_list({3}), "rank 3");
  EXPECT_EQ(rank_list({3, 4}), "ranks 3, 4");
  EXPECT_EQ(rank_list({0, 1, 2, 5, 7, 8}), "ranks 0-2, 5, 7, 8");
  std::vector<std::uint32_t> odd;
  for (std::uint32_t i = 1; i < 100; i += 2) odd.push_back(i);
  EXPECT_THAT(rank_list(odd), HasSubstr("31, and 34 more"));
}

}  // namespace
}  // namespace hvd
