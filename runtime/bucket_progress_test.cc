#include "runtime/bucket_progress.h"

#include <gmock/gmock.h>

namespace hvd {
namespace {

using Arrival = BucketProgress::Arrival;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(BucketProgress, ABucketIsCompleteWithItsLastTensor) {
  BucketProgress progress({{0, 2}, {1}}, {1, 1, 1});
  EXPECT_EQ(progress.arrive(0), Arrival::kCounted);
  EXPECT_THAT(progress.lacking(0), ElementsAre(2));
  EXPECT_EQ(progress.arrive(2), Arrival::kCompletesBucket);
  EXPECT_THAT(progress.lacking(0), IsEmpty());
}

TEST(BucketProgress, BucketsAreTakenInOrderThoughALaterOneIsFullFirst) {
  BucketProgress progress({{0}, {1}, {2}}, {1, 1, 1});
  EXPECT_EQ(progress.arrive(1), Arrival::kCompletesBucket);
  progress.mark_filled(1);
  EXPECT_EQ(progress.take_next(), std::nullopt);
  EXPECT_EQ(progress.arrive(0), Arrival::kCompletesBucket);
  progress.mark_filled(0);
  EXPECT_EQ(progress.take_next(), 0U);
  EXPECT_EQ(progress.take_next(), 1U);
  EXPECT_EQ(progress.take_next(), std::nullopt);
  EXPECT_EQ(progress.num_taken(), 2U);
}

TEST(BucketProgress, ATensorThatComesTwiceCompletesWithTheSecond) {
  BucketProgress progress({{0}}, {2});
  EXPECT_EQ(progress.arrive(0), Arrival::kMoreToCome);
  EXPECT_EQ(progress.arrive(0), Arrival::kCompletesBucket);
  // A third before the bucket is filled is in the sum, too.
  EXPECT_EQ(progress.arrive(0), Arrival::kMoreToCome);
  progress.mark_filled(0);
  EXPECT_EQ(progress.arrive(0), Arrival::kTooLate);
}

TEST(BucketProgress, ResetStartsTheNextStep) {
  BucketProgress progress({{0}, {1}}, {0, 1});
  EXPECT_EQ(progress.arrive(0), Arrival::kCompletesBucket);
  progress.mark_filled(0);
  EXPECT_EQ(progress.take_next(), 0U);
  progress.reset();
  EXPECT_FALSE(progress.is_filled(0));
  EXPECT_EQ(progress.num_taken(), 0U);
  EXPECT_EQ(progress.arrive(0), Arrival::kCompletesBucket);
}

}  // namespace
}  // namespace hvd
