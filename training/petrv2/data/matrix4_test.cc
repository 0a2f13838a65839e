#include "training/petrv2/data/matrix4.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "training/petrv2/data/geometry.h"

namespace hvd::petrv2 {
namespace {

using ::testing::DoubleNear;
using ::testing::Pointwise;

constexpr Quaternion kTilted = {0.9, -0.1, 0.3, 0.2};

TEST(Matrix4, QuaternionTurnsAsItsAngleSays) {
  const double half = 0.4 / 2;
  const Matrix3 about_z = rotation_matrix({std::cos(half), 0, 0, std::sin(half)});
  const Matrix3 expected = {
      std::cos(0.4), -std::sin(0.4), 0, std::sin(0.4), std::cos(0.4), 0, 0, 0, 1};
  EXPECT_THAT(about_z, Pointwise(DoubleNear(1e-15), expected));
  // A third of a turn about the diagonal takes x to y, y to z and z to x; the length does not
  // matter.
  EXPECT_THAT(rotation_matrix({2, 2, 2, 2}),
              Pointwise(DoubleNear(1e-15), Matrix3{0, 0, 1, 1, 0, 0, 0, 1, 0}));
}

TEST(Matrix4, BothInversesUndoARigidTransform) {
  const Matrix4 far = rigid_transform(kTilted, {1234.5, -987.6, 12.3});
  EXPECT_THAT(multiply(inverse_rigid(far), far), Pointwise(DoubleNear(1e-12), kIdentity4));
  EXPECT_THAT(inverse(far), Pointwise(DoubleNear(1e-11), inverse_rigid(far)));
}

TEST(Matrix4, GeneralInverseNeedsNoPivotOnTheDiagonal) {
  const Matrix4 m = {0, 2, 0, 1, 1, 0, 0, 3, 0, 0, 0, 5, 0, 0, 4, 7};
  EXPECT_THAT(multiply(inverse(m), m), Pointwise(DoubleNear(1e-14), kIdentity4));
  EXPECT_THAT(multiply(m, inverse(m)), Pointwise(DoubleNear(1e-14), kIdentity4));
}

// The long way: a point goes from lidar to ego, to global, to the camera's ego at its own time, to
// the camera, and is projected there.
TEST(Geometry, ProjectionIsTheChainOfAllFrames) {
  const Matrix4 lidar2ego = rigid_transform(Quaternion{0.7, 0.01, -0.02, -0.7}, {0.94, 0, 1.84});
  const Matrix4 ego2global =
      rigid_transform(Quaternion{0.5, 0.001, 0.002, 0.85}, {1010.1, 612.4, 0});
  const Matrix4 ego2global_later =
      rigid_transform(Quaternion{0.51, 0.001, 0.002, 0.86}, {1010.6, 612.9, 0});
  const Matrix4 cam2ego = rigid_transform(Quaternion{0.5, -0.5, 0.5, -0.5}, {1.7, 0.016, 1.5});
  const Matrix3 intrinsic = {1266.4, 0, 816.3, 0, 1266.4, 491.5, 0, 0, 1};
  const Matrix4 projection = lidar_to_image(intrinsic, multiply(ego2global_later, cam2ego),
                                            multiply(ego2global, lidar2ego));
  const Vector3 point = {2.5, 20, -0.7};
  Vector3 p = transform_point(ego2global, transform_point(lidar2ego, point));
  p = transform_point(inverse_rigid(cam2ego), transform_point(inverse_rigid(ego2global_later), p));
  const Vector3 expected = {intrinsic[0] * p[0] + intrinsic[2] * p[2],
                            intrinsic[4] * p[1] + intrinsic[5] * p[2], p[2]};
  EXPECT_THAT(transform_point(projection, point), Pointwise(DoubleNear(1e-8), expected));
  EXPECT_GT(p[2], 10);  // in front of the camera: the frames are not swapped
  EXPECT_THAT((std::array{projection[12], projection[13], projection[14], projection[15]}),
              Pointwise(DoubleNear(1e-12), std::array{0.0, 0.0, 0.0, 1.0}));
}

TEST(Geometry, TimeDeltaKeepsMicrosecondsOfAbsoluteTimes) {
  constexpr std::int64_t kNow = 1'532'402'927'647'951;
  std::array<std::int64_t, kNumCameras> current{};
  std::array<std::int64_t, kNumCameras> previous{};
  for (std::size_t camera = 0; camera < current.size(); ++camera) {
    current[camera] = kNow + static_cast<std::int64_t>(camera) * 8'000;
    previous[camera] = current[camera] - 500'000 - static_cast<std::int64_t>(camera);
  }
  EXPECT_DOUBLE_EQ(mean_time_delta(current, previous), 0.5000025);
}

}  // namespace
}  // namespace hvd::petrv2
