#include "runtime/bucket_plan.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<PlannedTensor> of_sizes(const std::vector<std::size_t>& sizes) {
  std::vector<PlannedTensor> tensors;
  for (const std::size_t size : sizes) tensors.push_back({size, 0});
  return tensors;
}

TEST(BucketPlan, NoTensorNoBucket) { EXPECT_THAT(plan_buckets({}, {10, 100}), IsEmpty()); }

TEST(BucketPlan, ABucketClosesWhenTheNextTensorWouldPassItsLimit) {
  const auto tensors = of_sizes({4, 6, 1, 60, 39, 1, 100, 7});
  EXPECT_THAT(plan_buckets(tensors, {10, 100}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3, 4), ElementsAre(5), ElementsAre(6),
                          ElementsAre(7)));
}

TEST(BucketPlan, ATensorLargerThanTheLimitStandsAlone) {
  EXPECT_THAT(plan_buckets(of_sizes({500, 1, 500, 1}), {10, 100}),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2), ElementsAre(3)));
}

TEST(BucketPlan, LimitZeroIsABucketForEachTensor) {
  EXPECT_THAT(plan_buckets(of_sizes({1, 2, 3}), {0, 0}),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
}

TEST(BucketPlan, TheEndOfALargeLastBucketIsABucketOfItsOwn) {
  EXPECT_THAT(plan_buckets(of_sizes({10, 40, 20, 5, 5}), {10, 100}),
              ElementsAre(ElementsAre(0), ElementsAre(1, 2), ElementsAre(3, 4)));
  // Not where it holds no more than twice the first's limit.
  EXPECT_THAT(plan_buckets(of_sizes({10, 10, 5, 5}), {10, 100}),
              ElementsAre(ElementsAre(0), ElementsAre(1, 2, 3)));
  // A last tensor that is too large is the whole end.
  EXPECT_THAT(plan_buckets(of_sizes({10, 10, 50}), {10, 100}),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
}

TEST(BucketPlan, KindsDoNotMixAndBucketsStandInTheOrderOfTheirLastTensor) {
  const std::vector<PlannedTensor> tensors = {{4, 0}, {4, 0}, {8, 1}, {8, 0},
                                              {8, 1}, {8, 0}, {4, 2}};
  EXPECT_THAT(plan_buckets(tensors, {100, 100}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 4), ElementsAre(3, 5), ElementsAre(6)));
}

TEST(BucketPlan, EveryTensorIsInExactlyOneBucketWithinItsLimit) {
  std::minstd_rand random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<PlannedTensor> tensors(1 + random() % 60);
    for (auto& tensor : tensors) {
      tensor = {1 + random() % 50, static_cast<int>(random() % 3)};
    }
    const auto buckets = plan_buckets(tensors, {20, 90});
    std::vector<std::size_t> all;
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      std::size_t sum = 0;
      for (const std::size_t i : buckets[b]) {
        sum += tensors[i].num_bytes;
        EXPECT_EQ(tensors[i].kind, tensors[buckets[b].front()].kind);
      }
      EXPECT_TRUE(buckets[b].size() == 1 || sum <= (b == 0 ? 20U : 90U));
      EXPECT_TRUE(std::is_sorted(buckets[b].begin(), buckets[b].end()));
      if (b > 0) {
        EXPECT_LT(buckets[b - 1].back(), buckets[b].back());
      }
      all.insert(all.end(), buckets[b].begin(), buckets[b].end());
    }
    std::sort(all.begin(), all.end());
    std::vector<std::size_t> expected(tensors.size());
    std::iota(expected.begin(), expected.end(), 0U);
    EXPECT_EQ(all, expected);
    EXPECT_EQ(buckets.back().back(), tensors.size() - 1);
  }
}

}  // namespace
}  // namespace hvd
