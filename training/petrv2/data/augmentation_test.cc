#include "training/petrv2/data/augmentation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <set>

#include "training/petrv2/data/geometry.h"

namespace hvd::petrv2 {
namespace {

using ::testing::DoubleNear;
using ::testing::Pointwise;

struct FixedCase {
  int height, width;
  double resize;
  int resized_height, resized_width, top;
};

TEST(ImageTransform, EvaluationFillsTheCrop) {
  for (const FixedCase& c :
       {FixedCase{256, 704, 0.44, 396, 704, 140}, FixedCase{320, 800, 0.50, 450, 800, 130},
        FixedCase{512, 1408, 0.88, 792, 1408, 280}, FixedCase{640, 1600, 1.00, 900, 1600, 260}}) {
    const ImageTransform t = fixed_image_transform(c.height, c.width, 900, 1600);
    EXPECT_DOUBLE_EQ(t.resize, c.resize);
    EXPECT_EQ(t.resized_height, c.resized_height);
    EXPECT_EQ(t.resized_width, c.resized_width);
    EXPECT_EQ(t.top, c.top);
    EXPECT_EQ(t.left, 0);
    EXPECT_FALSE(t.is_flipped);
  }
}

TEST(ImageTransform, EvaluationCentresWhatIsTooWide) {
  const ImageTransform t = fixed_image_transform(300, 300, 900, 1600);
  EXPECT_EQ(t.resized_width, 533);
  EXPECT_EQ(t.left, 116);  // int(233 / 2)
  EXPECT_EQ(t.top, 0);
}

TEST(ImageTransform, MatrixOfTheWorkedExample) {
  ImageTransform t{.height = 320,
                   .width = 800,
                   .resize = 0.55,
                   .resized_height = 495,
                   .resized_width = 880,
                   .top = 175,
                   .left = 40,
                   .is_flipped = true};
  EXPECT_THAT(image_matrix(t),
              Pointwise(DoubleNear(1e-12), Matrix3{-0.55, 0, 840, 0, 0.55, -175, 0, 0, 1}));
  t.is_flipped = false;
  EXPECT_THAT(image_matrix(t),
              Pointwise(DoubleNear(1e-12), Matrix3{0.55, 0, -40, 0, 0.55, -175, 0, 0, 1}));
}

TEST(ImageTransform, DrawsStayInRangeAndReachAllOfIt) {
  const AugmentationOptions options{.resize_range = {0.386, 0.55}};
  double smallest = 1;
  double largest = 0;
  int num_flipped = 0;
  int num_narrow = 0;
  int widest_left = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    CounterRng rng(3, 0, i, DrawPurpose::kImage);
    const ImageTransform t = draw_image_transform(options, 256, 704, 900, 1600, rng);
    smallest = std::min(smallest, t.resize);
    largest = std::max(largest, t.resize);
    num_flipped += t.is_flipped ? 1 : 0;
    num_narrow += t.resized_width < 704 ? 1 : 0;
    widest_left = std::max(widest_left, t.left);
    EXPECT_EQ(t.resized_width, static_cast<int>(1600 * t.resize));
    EXPECT_EQ(t.top, static_cast<int>(900 * t.resize) - 256);
    EXPECT_LE(t.left, std::max(0, t.resized_width - 704));
  }
  EXPECT_NEAR(smallest, 0.386, 0.001);
  EXPECT_NEAR(largest, 0.55, 0.001);
  EXPECT_NEAR(num_flipped, 1000, 100);
  EXPECT_NEAR(num_narrow, 2000 * (0.44 - 0.386) / (0.55 - 0.386), 100);
  EXPECT_GT(widest_left, 150);
}

TEST(ImageTransform, ASmallImageIsResizedAsTheLargeOneThatItStandsFor) {
  const AugmentationOptions options{.resize_range = {0.11, 0.11}};
  CounterRng rng(3, 0, 0, DrawPurpose::kImage);
  const ImageTransform t = draw_image_transform(options, 64, 176, 225, 400, rng);
  EXPECT_DOUBLE_EQ(t.resize, 0.44);
  EXPECT_EQ(t.resized_width, 176);
}

TEST(BevTransform, WorkedExample) {
  const BevTransform bev{.angle = 0.2, .scale = 1};
  Box box;
  box.center = {10, 5, 1};
  box.velocity = {2, -1};
  box.heading = -0.3 - std::numbers::pi / 2;  // theta = 0.3
  const Box moved = transform_box(box, bev);
  EXPECT_THAT(moved.center, Pointwise(DoubleNear(5e-9), Vector3{8.80731912, 6.88702620, 1}));
  EXPECT_THAT(moved.velocity, Pointwise(DoubleNear(5e-9), std::array{2.15880249, -0.58272792}));
  EXPECT_NEAR(-moved.heading - std::numbers::pi / 2, 0.1, 1e-12);
}

TEST(BevTransform, ScaleGrowsSizesAndSpeeds) {
  Box box;
  box.center = {10, -4, 2};
  box.size = {2, 4, 1.5};
  box.velocity = {3, 4};
  const Box moved = transform_box(box, {.angle = 0, .scale = 1.05});
  EXPECT_THAT(moved.center, Pointwise(DoubleNear(1e-12), Vector3{10.5, -4.2, 2.1}));
  EXPECT_THAT(moved.size, Pointwise(DoubleNear(1e-12), Vector3{2.1, 4.2, 1.575}));
  EXPECT_THAT(moved.velocity, Pointwise(DoubleNear(1e-12), std::array{3.15, 4.2}));
}

Vector3 front_left_top(const Box& box) {
  const double c = std::cos(box.heading);
  const double s = std::sin(box.heading);
  const double along = box.size[1] / 2;
  const double aside = box.size[0] / 2;
  return {box.center[0] + c * along - s * aside, box.center[1] + s * along + c * aside,
          box.center[2] + box.size[2] / 2};
}

std::array<double, 2> pixel(const Matrix4& lidar2img, const Vector3& point) {
  const Vector3 p = transform_point(lidar2img, point);
  return {p[0] / p[2], p[1] / p[2]};
}

TEST(BevTransform, ABoxCornerStaysOnItsPixel) {
  const Matrix4 cam2global = rigid_transform(Quaternion{0.5, -0.5, 0.5, -0.5}, {101, 202, 1.5});
  const Matrix4 lidar2global = rigid_transform(Quaternion{0.7, 0, 0, -0.7}, {100, 202, 1.8});
  const Matrix4 projection =
      lidar_to_image({1266, 0, 816, 0, 1266, 491, 0, 0, 1}, cam2global, lidar2global);
  Box box;
  box.center = {3, 25, -1};
  box.size = {1.9, 4.6, 1.7};
  box.heading = 1.2;
  const BevTransform bev{.angle = -0.31, .scale = 0.96};
  const auto before = pixel(projection, front_left_top(box));
  const auto after =
      pixel(transform_projection(projection, bev), front_left_top(transform_box(box, bev)));
  EXPECT_GT(before[0], 0);
  EXPECT_THAT(after, Pointwise(DoubleNear(1e-9), before));
}

TEST(BevTransform, DrawsStayInRange) {
  const AugmentationOptions options;
  std::set<double> angles;
  for (std::uint64_t i = 0; i < 500; ++i) {
    CounterRng rng(3, 0, i, DrawPurpose::kBev);
    const BevTransform bev = draw_bev_transform(options, rng);
    EXPECT_LE(std::abs(bev.angle), 0.3925);
    EXPECT_NEAR(bev.scale, 1, 0.05);
    angles.insert(bev.angle);
  }
  EXPECT_LT(*angles.begin(), -0.37);
  EXPECT_GT(*angles.rbegin(), 0.37);
}

TEST(Angle, WrapsIntoAHalfOpenTurn) {
  constexpr double kPi = std::numbers::pi;
  EXPECT_DOUBLE_EQ(wrap_angle(kPi), -kPi);
  EXPECT_DOUBLE_EQ(wrap_angle(-kPi), -kPi);
  EXPECT_NEAR(wrap_angle(7), 7 - 2 * kPi, 1e-15);
  EXPECT_NEAR(wrap_angle(-9), -9 + 2 * kPi, 1e-14);
  EXPECT_LT(wrap_angle(std::nextafter(-kPi, -4.0)), kPi);
}

}  // namespace
}  // namespace hvd::petrv2
