#include "training/petrv2/data/counter_rng.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace hvd::petrv2 {
namespace {

using ::testing::ElementsAre;

// The known answers that the authors of Philox publish (Random123, kat_vectors).
TEST(CounterRng, PhiloxGivesItsKnownAnswers) {
  EXPECT_THAT(philox_4x32_10({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_THAT(philox_4x32_10({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(
      philox_4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(CounterRng, TheFirstDrawIsTheFirstBlock) {
  CounterRng rng(0, 0, 0, DrawPurpose{0});
  EXPECT_EQ(rng.next(), 0xe169c58d6627e8d5U);
  EXPECT_EQ(rng.next(), 0x9b00dbd8bc57ac4cU);
}

TEST(CounterRng, EveryPartOfTheKeyMakesAnotherSeries) {
  std::set<std::uint64_t> first;
  for (const std::uint64_t seed : {0ULL, 1ULL, 1ULL << 32}) {
    for (const std::uint64_t epoch : {0U, 1U}) {
      for (const std::uint64_t index : {0ULL, 1ULL, 1ULL << 32}) {
        for (const auto purpose : {DrawPurpose::kImage, DrawPurpose::kBev}) {
          first.insert(CounterRng(seed, epoch, index, purpose).next());
        }
      }
    }
  }
  EXPECT_EQ(first.size(), 36U);
}

TEST(CounterRng, UniformHasTheMomentsOfUniform) {
  CounterRng rng(5, 0, 0, DrawPurpose::kImage);
  double sum = 0;
  double sum_of_squares = 0;
  constexpr int kCount = 100'000;
  for (int i = 0; i < kCount; ++i) {
    const double u = rng.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    sum_of_squares += u * u;
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.004);
  EXPECT_NEAR(sum_of_squares / kCount, 1.0 / 3, 0.004);
}

TEST(CounterRng, BelowTakesEveryValueAboutEquallyOften) {
  CounterRng rng(5, 0, 0, DrawPurpose::kPreviousFrame);
  std::vector<int> counts(24, 0);
  for (int i = 0; i < 24'000; ++i) ++counts[rng.below(24)];
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(rng.below(1), 0U);
}

}  // namespace
}  // namespace hvd::petrv2
