// Which boxes and which earlier step a sample takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <set>

#include "training/petrv2/data/box_filter.h"
#include "training/petrv2/data/previous_frame.h"

namespace hvd::petrv2 {
namespace {

using ::testing::ElementsAre;

AnnotatedBox seen_car(double x, double y) {
  AnnotatedBox annotated;
  annotated.box.center = {x, y, 40};  // z does not matter
  annotated.box.size = {2, 4, 1.5};
  annotated.num_lidar_pts = 1;
  return annotated;
}

TEST(BoxFilter, TakesWhatIsSeenInRangeAndOfAKnownClass) {
  EXPECT_TRUE(is_training_box(seen_car(51.19, -51.19)));
  EXPECT_FALSE(is_training_box(seen_car(51.2, 0)));
  EXPECT_FALSE(is_training_box(seen_car(0, -51.2)));
  AnnotatedBox box = seen_car(1, 1);
  box.num_lidar_pts = 0;
  EXPECT_FALSE(is_training_box(box));
  box.num_radar_pts = 1;
  EXPECT_TRUE(is_training_box(box));
  box.box.label = -1;
  EXPECT_FALSE(is_training_box(box));
}

TEST(BoxFilter, CleansVelocityAndHeading) {
  SampleRecord sample;
  sample.boxes = {seen_car(60, 0), seen_car(1, 2), seen_car(3, 4)};
  sample.boxes[1].box.velocity = {std::numeric_limits<double>::quiet_NaN(), 2};
  sample.boxes[1].box.heading = 4;
  const auto boxes = training_boxes(sample);
  ASSERT_EQ(boxes.size(), 2U);
  EXPECT_EQ(count_training_boxes(sample), 2U);
  EXPECT_THAT(boxes[0].velocity, ElementsAre(0, 2));
  EXPECT_NEAR(boxes[0].heading, 4 - 2 * std::numbers::pi, 1e-15);
  EXPECT_EQ(boxes[1].center[0], 3);
}

std::set<std::size_t> all_choices(std::size_t count) {
  std::set<std::size_t> choices;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    CounterRng rng(1, 0, i, DrawPurpose::kPreviousFrame);
    choices.insert(choose_previous(count, FrameChoice::kRandom, rng).value());
  }
  return choices;
}

TEST(PreviousFrame, RandomChoiceIsThreeToTwentySixBack) {
  EXPECT_THAT(all_choices(1), ElementsAre(0));
  EXPECT_THAT(all_choices(2), ElementsAre(1));
  EXPECT_THAT(all_choices(3), ElementsAre(2));
  EXPECT_THAT(all_choices(4), ElementsAre(3));
  EXPECT_THAT(all_choices(6), ElementsAre(3, 4, 5));
  const auto all = all_choices(30);
  EXPECT_EQ(all.size(), 24U);
  EXPECT_EQ(*all.begin(), 3U);
  EXPECT_EQ(*all.rbegin(), 26U);
}

TEST(PreviousFrame, FixedChoiceIsFifteenBack) {
  CounterRng rng(1, 0, 0, DrawPurpose::kPreviousFrame);
  EXPECT_EQ(choose_previous(30, FrameChoice::kFixed, rng), 14U);
  EXPECT_EQ(choose_previous(15, FrameChoice::kFixed, rng), 14U);
  EXPECT_EQ(choose_previous(5, FrameChoice::kFixed, rng), 4U);
}

TEST(PreviousFrame, FirstSampleOfASceneHasNone) {
  CounterRng rng(1, 0, 0, DrawPurpose::kPreviousFrame);
  EXPECT_EQ(choose_previous(0, FrameChoice::kRandom, rng), std::nullopt);
  EXPECT_EQ(choose_previous(0, FrameChoice::kFixed, rng), std::nullopt);
  EXPECT_DOUBLE_EQ(kDuplicateTimeDelta, 1.245);
}

}  // namespace
}  // namespace hvd::petrv2
