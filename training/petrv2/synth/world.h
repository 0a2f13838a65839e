// The made-up scenes: a vehicle that drives a gentle curve over flat ground, and objects of the ten
// classes around it that stand or move straight on. Everything follows from the seed, the scene's
// number and the counts. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "training/petrv2/synth/rig.h"

namespace hvd::petrv2 {

inline constexpr std::int64_t kSamplePeriod = 500000;  // us: 2 Hz
inline constexpr std::size_t kStepsPerSample = 6;      // 12 Hz: a key frame and five sweeps

// All times are seconds since the scene's first sample; positions are of the global frame, m.
struct EgoPath {
  double x = 0;
  double y = 0;
  double heading = 0;   // rad, at time 0
  double speed = 0;     // m/s
  double yaw_rate = 0;  // rad/s

  [[nodiscard]] Mount at(double time) const;  // ego -> global
};

struct WorldObject {
  int label = 0;
  double x = 0;  // at time 0
  double y = 0;
  double heading = 0;  // rad; it moves along it
  double speed = 0;    // m/s
  Vector3 size{};      // w l h, m; it stands on the ground
  double brightness = 1;

  [[nodiscard]] Vector3 center_at(double time) const;
};

struct WorldScene {
  std::string name;
  std::int64_t start_us = 0;  // of the first sample
  EgoPath ego;
  CameraRig rig;
  std::vector<WorldObject> objects;
};

struct WorldPlan {
  std::size_t num_scenes = 8;
  std::size_t samples_per_scene = 6;
  std::size_t objects_per_scene = 20;  // fewer where no free place is found
  std::uint64_t seed = 1;
  ImageSize image{};
};

[[nodiscard]] WorldScene make_scene(const WorldPlan& plan, std::size_t scene);

}  // namespace hvd::petrv2
