// One training sample as the trainer gets it: twelve augmented images, their projections and the
// boxes to find. A value; whoever holds it owns it. Torch-free: the batch is put together, and the
// images are normalised, where tensors are made.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "training/petrv2/data/matrix4.h"

namespace hvd::petrv2 {

inline constexpr int kNumCameras = 6;

// Camera order everywhere.
inline constexpr std::array<std::string_view, kNumCameras> kCameraNames = {
    "CAM_FRONT", "CAM_FRONT_RIGHT", "CAM_FRONT_LEFT",
    "CAM_BACK",  "CAM_BACK_LEFT",   "CAM_BACK_RIGHT"};

// Label = position; -1 in the records stands for every other category.
inline constexpr std::array<std::string_view, 10> kClassNames = {
    "car",        "truck",   "construction_vehicle", "bus",         "trailer", "barrier",
    "motorcycle", "bicycle", "pedestrian",           "traffic_cone"};

// In the lidar frame of the sample: x right, y forward, z up; metres, seconds, radians.
struct Box {
  std::array<double, 3> center{};    // of gravity
  std::array<double, 3> size{};      // w l h
  double heading = 0;                // psi: the length points along (cos psi, sin psi)
  std::array<double, 2> velocity{};  // m/s; the records may hold NaN for unknown, a Sample does not
  int label = 0;                     // 0..9
};

struct Sample {
  std::string token;
  std::uint64_t index = 0;           // in the data set, in sorted order
  std::vector<std::uint8_t> images;  // (12, height, width, 3) RGB, resized, cropped, flipped
  int height = 0;
  int width = 0;
  std::array<Matrix4, 2 * kNumCameras>
      lidar2img{};             // lidar metres -> (u d, v d, d, 1), all augmentation in
  double time_delta = 0;       // s, mean over the cameras of t - t_previous, > 0
  std::vector<Box> boxes;      // filtered, augmented
  std::string replaces_token;  // of the sample without boxes whose place this one takes; mostly ""
};

}  // namespace hvd::petrv2
