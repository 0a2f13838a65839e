#include "runtime/arrival_order.h"

#include <gmock/gmock.h>

#include "runtime/worker_exit.h"
#include "tests/support/rank_team.h"

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ArrivalOrder, TensorsStandAsTheyCameLastAndTheRestBehind) {
  EXPECT_THAT(order_of_arrival({}, 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(order_of_arrival(std::vector<std::size_t>{2, 0, 1}, 3), ElementsAre(2, 0, 1));
  EXPECT_THAT(order_of_arrival(std::vector<std::size_t>{4, 1, 4, 2}, 5),
              ElementsAre(1, 4, 2, 0, 3));
}

TEST(ArrivalOrder, RankZerosOrderIsAdopted) {
  test::Team team = test::connect_team(3);
  const Call call{std::chrono::seconds(20), nullptr};
  test::with_team(team, [&](Communicator& communicator) {
    const std::vector<std::int64_t> own = communicator.rank() == 0
                                              ? std::vector<std::int64_t>{2, 0, 1}
                                              : std::vector<std::int64_t>{0, 1, 2};
    const auto order = adopt_order(own, communicator, call);
    ASSERT_TRUE(order) << order.error().message;
    EXPECT_THAT(*order, ElementsAre(2, 0, 1));
  });
}

TEST(ArrivalOrder, WhatIsNoPermutationIsRefused) {
  const auto alone = single_communicator();
  for (const std::vector<std::int64_t>& bad : {std::vector<std::int64_t>{0, 0}, {0, 2}, {-1, 0}}) {
    const auto order = adopt_order(bad, *alone, {});
    ASSERT_FALSE(order);
    EXPECT_EQ(order.error().code, static_cast<ExitCode>(WorkerExit::kMismatch));
    EXPECT_THAT(order.error().message, HasSubstr("is not one of these 2 tensors"));
  }
}

}  // namespace
}  // namespace hvd
