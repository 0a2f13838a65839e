// When the made-up vehicle's cameras take their images, and what the files are called. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "training/petrv2/synth/world.h"

namespace hvd::petrv2 {

// How often all cameras fire in a scene: from the first sample to the last, at 12 Hz.
[[nodiscard]] inline std::size_t num_shots(const WorldPlan& plan) {
  return (plan.samples_per_scene - 1) * kStepsPerSample + 1;
}

[[nodiscard]] inline std::int64_t sample_time_us(const WorldScene& scene, std::size_t sample) {
  return scene.start_us + static_cast<std::int64_t>(sample) * kSamplePeriod;
}

// The image number `shot` of one camera; every sixth belongs to a key frame.
struct Shot {
  std::int64_t timestamp_us = 0;
  double time = 0;         // s since the scene's first sample; the first shots are slightly before
  std::size_t sample = 0;  // the nearest
  bool is_key = false;
  std::string filename;  // below the data root
};
[[nodiscard]] Shot shot_of(const WorldScene& scene, std::size_t shot, std::size_t camera);

// The camera in the world at the moment of its shot.
[[nodiscard]] Matrix4 camera_to_global(const WorldScene& scene, std::size_t camera, double time);

}  // namespace hvd::petrv2
