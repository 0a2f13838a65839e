#include "training/petrv2/data/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace hvd::petrv2 {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using Indices = std::vector<std::uint64_t>;

SamplerOptions shape(std::uint64_t num_samples, std::uint32_t ranks, std::uint32_t batch,
                     std::uint32_t micro_batches, Remainder remainder = Remainder::kDrop) {
  return {.num_samples = num_samples,
          .num_ranks = ranks,
          .batch_size = batch,
          .num_micro_batches = micro_batches,
          .remainder = remainder,
          .seed = 7};
}

Sampler make(const SamplerOptions& options) {
  auto sampler = Sampler::create(options);
  EXPECT_TRUE(sampler) << sampler.error().message;
  return *sampler;
}

// The samples of `num_steps` steps from `position` on, which ends behind them.
Indices take(Sampler& sampler, SamplerPosition& position, int num_steps) {
  Indices taken;
  for (int i = 0; i < num_steps; ++i) {
    position = sampler.next_step(position);
    const Indices step = sampler.samples_of_step(position);
    taken.insert(taken.end(), step.begin(), step.end());
    position = {position.epoch, position.samples_seen + sampler.step_size()};
  }
  return taken;
}

Indices sorted(Indices values) {
  std::sort(values.begin(), values.end());
  return values;
}

Indices up_to(std::uint64_t count) {
  Indices all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(Sampler, EpochsArePermutationsThatDiffer) {
  const Indices first = epoch_permutation(7, 0, 1000);
  EXPECT_EQ(sorted(first), up_to(1000));
  EXPECT_EQ(first, epoch_permutation(7, 0, 1000));
  EXPECT_NE(first, epoch_permutation(7, 1, 1000));
  EXPECT_NE(first, epoch_permutation(8, 0, 1000));
  EXPECT_NE(first, up_to(1000));
}

TEST(Sampler, ShufflesWithoutBias) {
  std::array<int, 24> counts{};
  for (std::uint64_t epoch = 0; epoch < 24'000; ++epoch) {
    const Indices p = epoch_permutation(1, epoch, 4);
    const auto lehmer = (p[0] * 6) + ((p[1] - (p[1] > p[0] ? 1 : 0)) * 2) + (p[2] > p[3] ? 1 : 0);
    ++counts[lehmer];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
}

TEST(Sampler, AStepIsARunOfThePermutationWhateverItsShape) {
  const Indices order = epoch_permutation(7, 3, 24);
  for (const auto& options : {shape(24, 4, 1, 3), shape(24, 1, 3, 4), shape(24, 2, 2, 3)}) {
    Sampler sampler = make(options);
    EXPECT_THAT(sampler.samples_of_step({3, 12}),
                ElementsAreArray(order.begin() + 12, order.end()));
  }
}

TEST(Sampler, DropsWhatIsLeftOver) {
  Sampler sampler = make(shape(10, 4, 1, 1));
  EXPECT_EQ(sampler.steps_per_epoch(), 2U);
  EXPECT_EQ(sampler.steps_left({0, 0}, 3), 6U);
  EXPECT_EQ(sampler.steps_left({1, 4}, 3), 3U);
  EXPECT_EQ(sampler.steps_left({2, 8}, 3), 0U);
  EXPECT_EQ(sampler.note(),
            "10 samples in steps of 4: 2 steps an epoch, 2 samples dropped each epoch");
  EXPECT_EQ(sampler.after_step({0, 0}), (SamplerPosition{0, 4}));
  EXPECT_EQ(sampler.after_step({0, 4}), (SamplerPosition{1, 0}));
}

TEST(Sampler, PadsTheLastStepFromTheBeginning) {
  Sampler sampler = make(shape(10, 4, 1, 1, Remainder::kPad));
  EXPECT_EQ(sampler.steps_per_epoch(), 3U);
  EXPECT_EQ(sampler.steps_left({1, 4}, 3), 5U);
  EXPECT_EQ(sampler.steps_left({2, 12}, 3), 0U);
  EXPECT_EQ(sampler.note(),
            "10 samples in steps of 4: 3 steps an epoch, 2 samples repeated to fill the last one");
  EXPECT_EQ(sampler.after_step({0, 4}), (SamplerPosition{0, 8}));
  EXPECT_EQ(sampler.after_step({0, 8}), (SamplerPosition{1, 0}));
  const Indices order = epoch_permutation(7, 0, 10);
  EXPECT_THAT(sampler.samples_of_step({0, 8}), ElementsAre(order[8], order[9], order[0], order[1]));
}

TEST(Sampler, AWholeEpochNeedsNoRemark) {
  EXPECT_EQ(make(shape(8, 4, 1, 1)).note(), "8 samples in steps of 4: 2 steps an epoch");
}

TEST(Sampler, PaddingServesMoreRanksThanSamples) {
  Sampler sampler = make(shape(3, 8, 1, 1, Remainder::kPad));
  EXPECT_EQ(sampler.steps_per_epoch(), 1U);
  EXPECT_THAT(sampler.samples_of_step({0, 0}), IsSupersetOf(up_to(3)));
}

// 4 ranks stop in the epoch; other numbers of ranks go on. Together they see what one rank sees.
TEST(Sampler, AnEpochContinuesOnAnotherNumberOfRanks) {
  for (const std::uint32_t ranks : {1U, 2U, 3U, 6U}) {
    SamplerPosition position;
    Sampler before = make(shape(20, 4, 1, 1));
    Indices seen = take(before, position, 2);
    Sampler after = make(shape(20, ranks, 1, 1));
    const Indices rest = take(after, position, static_cast<int>(12 / ranks));
    seen.insert(seen.end(), rest.begin(), rest.end());
    EXPECT_EQ(sorted(seen), up_to(20)) << ranks;
    EXPECT_EQ(seen, epoch_permutation(7, 0, 20)) << ranks;
    EXPECT_EQ(after.next_step(position), (SamplerPosition{1, 0})) << ranks;
  }
}

TEST(Sampler, AResumeThatLeavesLessThanAStepGoesToTheNextEpoch) {
  const Sampler wider = make(shape(20, 8, 1, 1));
  EXPECT_EQ(wider.next_step({2, 16}), (SamplerPosition{3, 0}));
  const Sampler padding = make(shape(20, 8, 1, 1, Remainder::kPad));
  EXPECT_EQ(padding.next_step({2, 16}), (SamplerPosition{2, 16}));
}

TEST(Sampler, EvaluationKeepsTheOrder) {
  SamplerOptions options = shape(6, 2, 1, 1);
  options.has_shuffle = false;
  Sampler sampler = make(options);
  EXPECT_THAT(sampler.samples_of_step({0, 2}), ElementsAre(2, 3));
  EXPECT_THAT(sampler.samples_of_step({5, 4}), ElementsAre(4, 5));
}

TEST(Sampler, RefusesWhatGivesNoStep) {
  EXPECT_THAT(
      Sampler::create(shape(3, 4, 1, 1)).error().message,
      HasSubstr("3 samples are less than one step of 4 (4 ranks x 1 samples x 1 micro-batches)"));
  EXPECT_FALSE(Sampler::create(shape(0, 1, 1, 1, Remainder::kPad)));
  EXPECT_FALSE(Sampler::create(shape(5, 0, 1, 1)));
}

}  // namespace
}  // namespace hvd::petrv2
