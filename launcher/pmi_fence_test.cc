#include "launcher/pmi_fence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/pmi_world.h"

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST(PmiWorld, GivesHydrasVariables) {
  RankPlace place;
  place.rank = 5;
  place.size = 8;
  place.local_rank = 1;
  place.local_size = 4;
  EXPECT_THAT(pmi_env(place),
              ElementsAre(Pair("PMI_FD", "3"), Pair("PMI_RANK", "5"), Pair("PMI_SIZE", "8"),
                          Pair("MPI_LOCALRANKID", "1"), Pair("MPI_LOCALNRANKS", "4")));
}

TEST(PmiWorld, NamesTheInterfaceOnlyWhereNothingElseLeadsToTheOthers) {
  EXPECT_THAT(pmi_env_if_unset(2, false, "eth0"), ElementsAre(Pair("UCX_NET_DEVICES", "eth0")));
  EXPECT_THAT(pmi_env_if_unset(1, false, "eth0"), IsEmpty());
  EXPECT_THAT(pmi_env_if_unset(2, true, "eth0"), IsEmpty());
  EXPECT_THAT(pmi_env_if_unset(2, false, ""), IsEmpty());
}

TEST(PmiWorld, MapsRanksToNodesInBlocks) {
  struct Case {
    std::vector<std::uint32_t> nodes;
    const char* mapping;
  };
  for (const auto& [nodes, mapping] : {
           Case{{0}, "(vector,(0,1,1))"},
           Case{{0, 0, 0}, "(vector,(0,1,3))"},
           Case{{0, 0, 1, 1, 2, 2, 3, 3}, "(vector,(0,4,2))"},
           Case{{0, 1, 2, 3}, "(vector,(0,4,1))"},
           Case{{0, 0, 1, 1, 2}, "(vector,(0,2,2),(2,1,1))"},
           Case{{0, 0, 0, 1, 1, 2, 2}, "(vector,(0,1,3),(1,2,2))"},
           Case{{0, 1, 2, 0, 1, 2}, "(vector,(0,3,1))"},
           Case{{0, 1, 2, 0, 1}, "(vector,(0,3,1),(0,2,1))"},
           Case{{1, 1, 0, 0}, "(vector,(1,1,2),(0,1,2))"},
       }) {
    EXPECT_EQ(process_mapping(nodes), mapping);
  }
}

TEST(PmiWorld, AMappingLongerThanAValueIsLeftOut) {
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t i = 0; i < 300; ++i) nodes.push_back((i * 7) % 11);
  EXPECT_EQ(process_mapping(nodes), "");
}

TEST(PmiWorld, CountsTheNodesThatHaveRanks) {
  Plan plan;
  for (const std::uint32_t node : {0U, 0U, 2U}) {
    plan.ranks.emplace_back();
    plan.ranks.back().node = node;
  }
  const v1::PmiWorld world = pmi_world(plan);
  EXPECT_EQ(world.size(), 3U);
  EXPECT_EQ(world.num_nodes(), 2U);
  EXPECT_EQ(world.process_mapping(), "(vector,(0,1,2),(2,1,1))");
}

std::string puts_of(const std::string& key, const std::string& value) {
  v1::PmiPuts puts;
  puts.add_puts()->set_key(key);
  puts.mutable_puts(0)->set_value(value);
  return puts.SerializeAsString();
}

v1::StoreFence fence(std::uint64_t sequence, std::string puts = {}) {
  v1::StoreFence fence;
  fence.set_sequence(sequence);
  fence.set_puts(std::move(puts));
  return fence;
}

class PmiFenceTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const std::uint32_t node : {0U, 2U, 3U}) fence_.expect(node);
  }
  PmiFence fence_;
};

TEST_F(PmiFenceTest, AnswersAllWhenTheLastHasComeWithWhatTheOthersPut) {
  EXPECT_THAT(fence_.take(0, 10, fence(1, puts_of("a", "0"))), IsEmpty());
  EXPECT_THAT(fence_.take(3, 30, fence(1)), IsEmpty());
  const StoreAnswers answers = fence_.take(2, 20, fence(1, puts_of("b", "2")));
  ASSERT_EQ(answers.size(), 3U);
  std::map<std::uint32_t, std::string> keys;
  for (const StoreAnswer& answer : answers) {
    EXPECT_EQ(answer.reply.status(), v1::STORE_STATUS_OK);
    EXPECT_EQ(answer.reply.id(), answer.node * 10 == 0 ? 10 : answer.node * 10);
    v1::PmiPuts puts;
    ASSERT_TRUE(puts.ParseFromString(answer.reply.value()));
    for (const v1::PmiPut& put : puts.puts()) keys[answer.node] += put.key() + put.value();
  }
  EXPECT_THAT(keys, ElementsAre(Pair(0, "b2"), Pair(2, "a0"), Pair(3, "a0b2")));
}

TEST_F(PmiFenceTest, IsUsedAgainAndAgain) {
  for (std::uint64_t round = 1; round <= 3; ++round) {
    for (const std::uint32_t node : {3U, 0U})
      EXPECT_THAT(fence_.take(node, round, fence(round)), IsEmpty());
    EXPECT_EQ(fence_.take(2, round, fence(round)).size(), 3U);
  }
}

TEST_F(PmiFenceTest, RefusesWhoComesTwiceTooEarlyOrUninvited) {
  EXPECT_THAT(fence_.take(0, 1, fence(1)), IsEmpty());
  for (const auto& [node, sequence] : {std::pair{0U, 1U}, {2U, 2U}, {1U, 1U}}) {
    const StoreAnswers answers = fence_.take(node, 9, fence(sequence));
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].node, node);
    EXPECT_EQ(answers[0].reply.id(), 9U);
    EXPECT_EQ(answers[0].reply.status(), v1::STORE_STATUS_CONFLICT);
  }
  EXPECT_THAT(fence_.take(2, 2, fence(1)), IsEmpty());
  EXPECT_EQ(fence_.take(3, 3, fence(1)).size(), 3U) << "the others are not disturbed";
}

TEST_F(PmiFenceTest, MoreThanAMessageHoldsIsRefusedToAll) {
  const std::string half(PmiFence::kMaxBytes / 2, 'x');
  EXPECT_THAT(fence_.take(0, 1, fence(1, half)), IsEmpty());
  EXPECT_THAT(fence_.take(2, 2, fence(1, half)), IsEmpty());
  const StoreAnswers answers = fence_.take(3, 3, fence(1, "x"));
  ASSERT_EQ(answers.size(), 3U);
  for (const StoreAnswer& answer : answers) {
    EXPECT_EQ(answer.reply.status(), v1::STORE_STATUS_TOO_LARGE);
    EXPECT_THAT(answer.reply.text(), HasSubstr("can be exchanged"));
  }
}

}  // namespace
}  // namespace hvd
