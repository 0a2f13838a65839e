#include "training/petrv2/synth/lidar_boxes.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numbers>

#include "training/petrv2/synth/rig.h"

namespace hvd::petrv2 {
namespace {

constexpr double kPi = std::numbers::pi;

// One object annotated at the given times, at x = its time squared, y = minus its time.
NuscenesTables one_object(const std::vector<double>& times) {
  NuscenesTables tables;
  for (std::size_t i = 0; i < times.size(); ++i) {
    NuscenesSample sample;
    sample.timestamp_us = std::llround(times[i] * 1e6);
    sample.annotations = {static_cast<std::uint32_t>(i)};
    tables.samples.push_back(sample);
    Annotation annotation;
    annotation.sample = static_cast<std::uint32_t>(i);
    annotation.center = {times[i] * times[i], -times[i], 1};
    if (i > 0) annotation.prev = static_cast<std::uint32_t>(i - 1);
    if (i + 1 < times.size()) annotation.next = static_cast<std::uint32_t>(i + 1);
    tables.annotations.push_back(annotation);
  }
  return tables;
}

TEST(GlobalVelocity, IsTheDifferenceOverTheNeighbours) {
  const auto tables = one_object({1, 1.5, 2});
  EXPECT_THAT(global_velocity(tables, 0), testing::ElementsAre(2.5, -1));  // forward
  EXPECT_THAT(global_velocity(tables, 1), testing::ElementsAre(3, -1));    // central
  EXPECT_THAT(global_velocity(tables, 2), testing::ElementsAre(3.5, -1));  // backward
}

TEST(GlobalVelocity, IsUnknownWithoutNeighboursOrTooFarApart) {
  struct Row {
    std::vector<double> times;
    std::uint32_t annotation;
    bool is_known;
  };
  const Row rows[] = {{{1}, 0, false},           {{1, 2.5}, 0, true},
                      {{1, 2.6}, 0, false},      {{1, 2.5, 4}, 1, true},
                      {{1, 1.5, 4.1}, 1, false}, {{1, 1.5, 4.1}, 0, true},
                      {{1, 1.5, 4.1}, 2, false}, {{1, 1}, 0, false}};
  for (const Row& row : rows) {
    const auto [vx, vy] = global_velocity(one_object(row.times), row.annotation);
    EXPECT_EQ(!std::isnan(vx), row.is_known) << testing::PrintToString(row.times);
    EXPECT_EQ(!std::isnan(vy), row.is_known);
  }
}

// The vehicle at (1000, 2000) heads north-west; its lidar sits 1 m ahead of it and 2 m high.
NuscenesTables parked_vehicle() {
  NuscenesTables tables = one_object({1, 1.5});
  tables.calibrations.push_back({rigid_transform(turn_about_z(-kPi / 2), {1, 0, 2}), {}});
  for (NuscenesSample& sample : tables.samples) {
    sample.lidar.emplace();
    sample.lidar->ego2global = rigid_transform(turn_about_z(kPi * 3 / 4), {1000, 2000, 0});
  }
  return tables;
}

TEST(LidarBoxes, StandInTheLidarFrame) {
  NuscenesTables tables = parked_vehicle();
  const double root = std::sqrt(0.5);
  // 11 m ahead of the vehicle and 3 m to its left, facing west; at the second sample 1 m further
  // west.
  const Vector3 place = {1000 - 11 * root - 3 * root, 2000 + 11 * root - 3 * root, 1.5};
  tables.annotations[0].center = place;
  tables.annotations[1].center = {place[0] - 1, place[1], place[2]};
  for (Annotation& annotation : tables.annotations) {
    annotation.rotation = turn_about_z(kPi);
    annotation.size = {2, 4, 1};
    annotation.num_lidar_pts = 12;
    annotation.num_radar_pts = 3;
    annotation.label = 6;
  }
  const auto boxes = boxes_in_lidar_frame(tables, tables.samples[0]);
  ASSERT_EQ(boxes.size(), 1U);
  const Box& box = boxes[0].box;
  EXPECT_NEAR(box.center[0], -3, 1e-9);  // x right
  EXPECT_NEAR(box.center[1], 10, 1e-9);  // y forward
  EXPECT_NEAR(box.center[2], -0.5, 1e-9);
  EXPECT_NEAR(box.heading, kPi * 3 / 4, 1e-9);  // 45 degrees to the left of ahead
  EXPECT_NEAR(box.velocity[0], -2 * root, 1e-6);
  EXPECT_NEAR(box.velocity[1], 2 * root, 1e-6);
  EXPECT_EQ(box.size, (std::array<double, 3>{2, 4, 1}));
  EXPECT_EQ(box.label, 6);
  EXPECT_EQ(boxes[0].num_lidar_pts, 12);
  EXPECT_EQ(boxes[0].num_radar_pts, 3);
}

TEST(LidarBoxes, UnknownVelocityStaysUnknown) {
  NuscenesTables tables = parked_vehicle();
  tables.annotations[0].next.reset();
  const auto boxes = boxes_in_lidar_frame(tables, tables.samples[0]);
  EXPECT_TRUE(std::isnan(boxes[0].box.velocity[0]) && std::isnan(boxes[0].box.velocity[1]));
  EXPECT_TRUE(std::isfinite(boxes[0].box.heading));
}

TEST(CategoryLabels, FollowTheDetectionTask) {
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"vehicle.car", "car"},
      {"vehicle.truck", "truck"},
      {"vehicle.construction", "construction_vehicle"},
      {"vehicle.bus.bendy", "bus"},
      {"vehicle.bus.rigid", "bus"},
      {"vehicle.trailer", "trailer"},
      {"movable_object.barrier", "barrier"},
      {"vehicle.motorcycle", "motorcycle"},
      {"vehicle.bicycle", "bicycle"},
      {"human.pedestrian.adult", "pedestrian"},
      {"human.pedestrian.child", "pedestrian"},
      {"human.pedestrian.construction_worker", "pedestrian"},
      {"human.pedestrian.police_officer", "pedestrian"},
      {"movable_object.trafficcone", "traffic_cone"}};
  for (const auto& [category, name] : rows) {
    const int label = label_of_category(category);
    ASSERT_GE(label, 0) << category;
    EXPECT_EQ(kClassNames[static_cast<std::size_t>(label)], name);
  }
  for (const std::string_view other :
       {"animal", "human.pedestrian.stroller", "human.pedestrian.wheelchair",
        "human.pedestrian.personal_mobility", "movable_object.debris",
        "movable_object.pushable_pullable", "static_object.bicycle_rack",
        "vehicle.emergency.ambulance", "vehicle.emergency.police", "vehicle.carriage", ""}) {
    EXPECT_EQ(label_of_category(other), -1) << other;
  }
}

}  // namespace
}  // namespace hvd::petrv2
