#include "runtime/plan_check.h"

#include <gmock/gmock.h>

#include "runtime/worker_exit.h"
#include "tests/support/rank_team.h"

namespace hvd {
namespace {

using Kind = PlanLine::Kind;
using testing::HasSubstr;

Plan plan() {
  return {{Kind::kTensor, "stem.weight", "float32 [64, 3, 7, 7] on cpu"},
          {Kind::kTensor, "head.weight", "float32 [10, 64] on cpu"},
          {Kind::kSetting, "compression", "none"}};
}

std::string message_of(const std::vector<Plan>& of_ranks) {
  const auto compared = compare_plans(of_ranks);
  if (compared) return "";
  EXPECT_EQ(compared.error().code, static_cast<ExitCode>(WorkerExit::kMismatch));
  return compared.error().message;
}

TEST(PlanCheck, EqualPlansInAnyOrderAgree) {
  Plan turned = plan();
  std::swap(turned[0], turned[2]);
  EXPECT_EQ(message_of({plan(), turned, plan()}), "");
  EXPECT_EQ(message_of({plan()}), "");
}

TEST(PlanCheck, AnotherShapeIsNamedWithItsRanks) {
  Plan other = plan();
  other[1].text = "float32 [11, 64] on cpu";
  EXPECT_EQ(message_of({plan(), other, other, other, plan(), other}),
            "the ranks do not have the same tensors: head.weight is float32 [10, 64] on cpu on "
            "ranks 0, 4 and float32 [11, 64] on cpu on ranks 1-3, 5; start all ranks with the same "
            "program and configuration");
}

TEST(PlanCheck, AMissingTensorIsNamedWithTheRanksThatLackIt) {
  Plan less = plan();
  less.erase(less.begin());
  EXPECT_THAT(message_of({plan(), less, plan()}),
              HasSubstr("stem.weight is float32 [64, 3, 7, 7] on cpu on ranks 0, 2 and missing on "
                        "rank 1;"));
  EXPECT_THAT(message_of({less, plan()}), HasSubstr("on rank 1 and missing on rank 0;"));
}

TEST(PlanCheck, SettingsComeBeforeTensorsAndFurtherDifferencesAreCounted) {
  Plan other = plan();
  other[0].text = "float64 [64, 3, 7, 7] on cpu";
  other[1].name = "Head.weight";
  other[2].text = "fp16";
  EXPECT_EQ(message_of({plan(), other}),
            "the ranks do not have the same settings: compression is none on rank 0 and fp16 on "
            "rank 1 (3 differences more); start all ranks with the same options and environment");
}

TEST(PlanCheck, AProblemOfOneRankIsEverybodysError) {
  Plan bad = plan();
  bad.push_back({Kind::kProblem, "", "the tensor x has gaps between its values"});
  EXPECT_EQ(message_of({plan(), bad}), "rank 1: the tensor x has gaps between its values");
  EXPECT_EQ(message_of({bad}), "rank 0: the tensor x has gaps between its values");
}

TEST(PlanCheck, RanksLearnTheSameErrorFromEachOther) {
  for (const int size : {1, 2, 5}) {
    test::Team team = test::connect_team(size);
    std::vector<std::string> messages(static_cast<std::size_t>(size));
    const Call call{std::chrono::seconds(20), nullptr};
    test::with_team(team, [&](Communicator& communicator) {
      EXPECT_TRUE(check_plan(plan(), communicator, call));
      Plan own = plan();
      if (communicator.rank() == 1) own[1].text = "float32 [10, 640000] on cpu";
      const auto checked = check_plan(own, communicator, call);
      messages[static_cast<std::size_t>(communicator.rank())] =
          checked ? "none" : checked.error().message;
    });
    for (const std::string& message : messages) EXPECT_EQ(message, messages.front());
    EXPECT_EQ(messages.front() == "none", size == 1);
    if (size > 1) {
      EXPECT_THAT(messages.front(), HasSubstr("[10, 640000] on cpu on rank 1"));
    }
  }
}

}  // namespace
}  // namespace hvd
