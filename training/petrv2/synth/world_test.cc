#include "training/petrv2/synth/world.h"

#include <gmock/gmock.h>

#include <cmath>

#include "training/petrv2/synth/shots.h"

namespace hvd::petrv2 {
namespace {

using testing::AllOf;
using testing::Ge;
using testing::Gt;
using testing::Le;

double distance(const Vector3& a, const Vector3& b) { return std::hypot(a[0] - b[0], a[1] - b[1]); }

TEST(World, SameSeedSameSceneOtherSeedOther) {
  const WorldPlan plan;
  WorldPlan other = plan;
  other.seed = 2;
  const WorldScene a = make_scene(plan, 3);
  const WorldScene b = make_scene(plan, 3);
  EXPECT_EQ(a.ego.x, b.ego.x);
  ASSERT_EQ(a.objects.size(), b.objects.size());
  EXPECT_EQ(a.objects.back().x, b.objects.back().x);
  EXPECT_NE(a.ego.x, make_scene(other, 3).ego.x);
  EXPECT_NE(a.ego.x, make_scene(plan, 4).ego.x);
}

TEST(World, VehicleMovesAtItsSpeedAlongItsHeading) {
  for (const double yaw_rate : {0.0, 1e-9, 0.07, -0.3}) {
    const EgoPath path{100, 200, 0.4, 6, yaw_rate};
    constexpr double kStep = 1e-3;
    for (const double time : {0.0, 0.7, 5.0}) {
      const Vector3 before = path.at(time - kStep).translation;
      const Vector3 after = path.at(time + kStep).translation;
      const double heading = 0.4 + yaw_rate * time;
      EXPECT_NEAR((after[0] - before[0]) / (2 * kStep), 6 * std::cos(heading), 1e-5);
      EXPECT_NEAR((after[1] - before[1]) / (2 * kStep), 6 * std::sin(heading), 1e-5);
    }
  }
}

TEST(World, NothingTouchesAnythingAndAllClassesAppear) {
  WorldPlan plan;
  plan.samples_per_scene = 12;
  std::array<int, kClassNames.size()> by_class{};
  int num_moving = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    const WorldScene scene = make_scene(plan, i);
    EXPECT_THAT(scene.objects.size(), AllOf(Ge(15U), Le(20U)));
    for (const WorldObject& a : scene.objects) {
      ++by_class[static_cast<std::size_t>(a.label)];
      num_moving += a.speed > 0 ? 1 : 0;
      EXPECT_DOUBLE_EQ(a.center_at(1)[2], a.size[2] / 2);
      for (const WorldObject& b : scene.objects) {
        if (&a == &b) continue;
        for (double time = 0; time <= 5.5; time += 0.25) {
          EXPECT_GT(distance(a.center_at(time), b.center_at(time)), (a.size[1] + b.size[1]) / 2);
          EXPECT_GT(distance(a.center_at(time), scene.ego.at(time).translation), a.size[1] / 2 + 3);
        }
      }
    }
  }
  EXPECT_THAT(by_class, testing::Each(Ge(5)));
  EXPECT_GT(num_moving, 20);
}

TEST(World, CamerasLookAroundFromTheirPlaces) {
  const WorldScene scene = make_scene({}, 0);
  constexpr std::array<double, kNumCameras> kYaw = {0, -55, 55, 180, 108, -110};
  for (std::size_t i = 0; i < kNumCameras; ++i) {
    const Matrix3 turn = rotation_matrix(scene.rig[i].mount.rotation);
    const double yaw = kYaw[i] * 3.14159265358979 / 180;
    // The third column is the optical axis, the second points down.
    EXPECT_GT(turn[2] * std::cos(yaw) + turn[5] * std::sin(yaw), std::cos(0.02)) << i;
    EXPECT_LT(turn[7], -std::cos(0.02)) << i;
  }
  const Matrix3 lidar = rotation_matrix(lidar_mount().rotation);
  EXPECT_NEAR(lidar[1], 1, 1e-12);   // its y axis is ahead
  EXPECT_NEAR(lidar[3], -1, 1e-12);  // its x axis is to the right
}

TEST(Shots, SixAtEachSampleAndFiveTimesBetween) {
  const WorldPlan plan{.samples_per_scene = 3};
  const WorldScene scene = make_scene(plan, 1);
  ASSERT_EQ(num_shots(plan), 13U);
  for (std::size_t camera = 0; camera < kNumCameras; ++camera) {
    std::int64_t before = 0;
    for (std::size_t i = 0; i < 13; ++i) {
      const Shot shot = shot_of(scene, i, camera);
      EXPECT_EQ(shot.is_key, i == 0 || i == 6 || i == 12);
      EXPECT_THAT(shot.timestamp_us, Gt(before));
      before = shot.timestamp_us;
      EXPECT_THAT(shot.sample, Le(2U));
      const auto apart = std::abs(shot.timestamp_us - sample_time_us(scene, shot.sample));
      EXPECT_THAT(apart, Le(shot.is_key ? 50000 : 300000));
    }
  }
  const std::string name = shot_of(scene, 7, 4).filename;
  EXPECT_THAT(name, testing::StartsWith("sweeps/CAM_BACK_LEFT/scene-0002__CAM_BACK_LEFT__15324"));
}

}  // namespace
}  // namespace hvd::petrv2
