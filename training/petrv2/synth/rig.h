// The sensors of the made-up vehicle: six cameras and a lidar, placed and built about as those of
// nuScenes are. Pure.
#pragma once

#include <array>
#include <cstdint>

#include "training/petrv2/data/counter_rng.h"
#include "training/petrv2/data/sample.h"

namespace hvd::petrv2 {

struct ImageSize {
  int width = 800;  // px
  int height = 450;
};

// Where a sensor sits: x forward, y left, z up from the middle of the rear axle on the ground.
struct Mount {
  Vector3 translation{};  // m
  Quaternion rotation;    // sensor -> ego
};

struct Camera {
  Mount mount;
  Matrix3 intrinsic{};  // px, for the image size asked for; pixel (0, 0) spans [0, 1) x [0, 1)
};

// In the order of kCameraNames.
using CameraRig = std::array<Camera, kNumCameras>;

// How long before the lidar's moment each camera takes its image, us: the lidar turns, and a camera
// fires when the beam crosses the middle of its view.
inline constexpr std::array<std::int64_t, kNumCameras> kCameraLead = {35000, 27000, 43000,
                                                                      10000, 1000,  20000};

// A rig's cameras are each turned by up to 0.6 degrees at random, as mounted by hand.
[[nodiscard]] CameraRig make_camera_rig(const ImageSize& size, CounterRng& rng);

[[nodiscard]] Mount lidar_mount();

// The rotation about z by `angle`, rad.
[[nodiscard]] Quaternion turn_about_z(double angle);

}  // namespace hvd::petrv2
