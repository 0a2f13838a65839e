#include "training/petrv2/optim/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd::petrv2 {
namespace {

using ::testing::HasSubstr;

Schedule release(std::uint64_t total_batch = 8) {
  Schedule schedule;
  schedule.total_batch = total_batch;
  return schedule;
}

TEST(Schedule, WarmsUpLinearlyFromAThird) {
  const Schedule schedule = release();
  EXPECT_NEAR(schedule.rate(2e-4, 0, 0), 2e-4 / 3, 1e-16);
  EXPECT_NEAR(schedule.rate(2e-4, 0, 1 * 8), 6.69333333333333e-5, 1e-16);
  EXPECT_NEAR(schedule.rate(2e-4, 0, 250 * 8), 1.33333333333333e-4, 1e-16);
  EXPECT_NEAR(schedule.rate(2e-4, 0, 499 * 8), 1.99733333333333e-4, 1e-16);
  EXPECT_DOUBLE_EQ(schedule.rate(2e-4, 0, 500 * 8), 2e-4);
}

TEST(Schedule, CosineStepsOnceAnEpoch) {
  const Schedule schedule = release();
  const std::pair<int, double> table[] = {
      {1, 1.991453417e-4}, {2, 1.965959900e-4},  {5, 1.793559987e-4}, {11, 1.131395666e-4},
      {12, 1.001e-4},      {20, 1.358406216e-5}, {23, 1.054658349e-6}};
  for (const auto& [epoch, expected] : table) {
    const auto e = static_cast<std::uint64_t>(epoch);
    const auto begin = static_cast<std::uint64_t>(epoch) * 3517 * 8;
    EXPECT_NEAR(schedule.rate(2e-4, e, begin), expected, 1e-13) << epoch;
    EXPECT_EQ(schedule.rate(2e-4, e, begin), schedule.rate(2e-4, e, begin + 3516 * 8)) << epoch;
    EXPECT_NEAR(schedule.rate(2e-5, e, begin), expected / 10, 1e-14) << epoch;
  }
}

TEST(Schedule, AnotherNumberOfRanksKeepsTheRateOfTheSamples) {
  const std::uint64_t seen = 3517 * 8 * 5 + 800;
  EXPECT_EQ(release(8).rate(2e-4, 5, seen), release(16).rate(2e-4, 5, seen));
}

TEST(ScaledRate, IsLinearInTheBatchAndWarnsOffTheTable) {
  TrainConfig config;
  EXPECT_DOUBLE_EQ(scale_rate(config, 8).base, 2e-4);
  EXPECT_FALSE(scale_rate(config, 8).warning);
  EXPECT_DOUBLE_EQ(scale_rate(config, 16).base, 4e-4);
  EXPECT_DOUBLE_EQ(scale_rate(config, 4).base, 1e-4);
  ASSERT_TRUE(scale_rate(config, 4).warning);
  EXPECT_THAT(*scale_rate(config, 4).warning, HasSubstr("total batch of 4"));
  EXPECT_THAT(scale_rate(config, 4).rule, HasSubstr("x 0.5"));
  EXPECT_TRUE(scale_rate(config, 64).warning);
}

}  // namespace
}  // namespace hvd::petrv2
