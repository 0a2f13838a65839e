#include "training/petrv2/trainer/rank_agreement.h"

#include <gmock/gmock.h>

#include "runtime/worker_exit.h"
#include "tests/support/rank_team.h"

namespace hvd::petrv2 {
namespace {

using testing::HasSubstr;

TEST(JobFacts, DifferencesNameOptionValuesAndRanks) {
  std::vector<JobFacts> ranks(4, {{"--batch", "1"}, {"--seed", "7"}, {"data", "a b"}});
  EXPECT_EQ(differences(ranks), std::nullopt);
  ranks[3][0].value = "2";
  EXPECT_EQ(differences(ranks),
            "--batch is 2 on rank 3 and 1 on ranks 0-2; give all ranks the same");
  ranks[1][2].value = "a c";
  EXPECT_EQ(differences(ranks),
            "--batch is 2 on rank 3 and 1 on ranks 0-2; data is a c on rank 1 and a b on ranks 0, "
            "2, 3; give all ranks the same");
}

TEST(JobFacts, AFactThatARankLacksDiffers) {
  EXPECT_EQ(differences({{{"--lr", ""}}, {{"--lr", "1"}}}),
            "--lr is nothing on rank 0 and 1 on rank 1; give all ranks the same");
  EXPECT_EQ(differences({{}, {{"--new", "1"}}}),
            "--new is nothing on rank 0 and 1 on rank 1; give all ranks the same");
}

TEST(JobFacts, ManyValuesStayShort) {
  std::vector<JobFacts> ranks;
  for (int rank = 0; rank < 500; ++rank) ranks.push_back({{"--seed", std::to_string(rank)}});
  const auto text = differences(ranks);
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("and 496 more values"));
  EXPECT_LT(text->size(), 200U);
}

TEST(JobFacts, SurviveTheWay) {
  const JobFacts facts = {{"a=\"\n", ""}, {"", "\0 b"}, {"c", "\xff"}};
  const JobFacts again = facts_from(to_text(facts));
  ASSERT_EQ(again.size(), 3U);
  EXPECT_EQ(again[0].name, facts[0].name);
  EXPECT_EQ(again[1].value, facts[1].value);
  EXPECT_TRUE(facts_from("no json").empty());
  EXPECT_TRUE(facts_from(R"([1, ["a"], ["b", 2]])").empty());
}

TEST(RankAgreement, AllRanksGetTheSameSentence) {
  test::Team team = test::connect_team(3);
  test::with_team(team, [&](Communicator& communicator) {
    RankAgreement agreement(communicator, std::chrono::seconds(20));
    EXPECT_TRUE(agreement.check_same_job({{"--batch", "1"}}));
    const std::string batch = communicator.rank() == 2 ? "16" : "1";
    const auto refused = agreement.check_same_job({{"--batch", batch}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, static_cast<ExitCode>(WorkerExit::kMismatch));
    EXPECT_EQ(refused.error().message,
              "--batch is 16 on rank 2 and 1 on ranks 0, 1; give all ranks the same");
  });
}

}  // namespace
}  // namespace hvd::petrv2
