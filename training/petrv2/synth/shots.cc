#include "training/petrv2/synth/shots.h"

#include <fmt/format.h>

namespace hvd::petrv2 {
namespace {

Matrix4 to_matrix(const Mount& mount) { return rigid_transform(mount.rotation, mount.translation); }

}  // namespace

Shot shot_of(const WorldScene& scene, std::size_t shot, std::size_t camera) {
  const auto since_start =
      static_cast<std::int64_t>(shot) * kSamplePeriod / static_cast<std::int64_t>(kStepsPerSample) -
      kCameraLead[camera];
  Shot result;
  result.timestamp_us = scene.start_us + since_start;
  result.time = 1e-6 * static_cast<double>(since_start);
  result.sample = (shot + kStepsPerSample / 2) / kStepsPerSample;
  result.is_key = shot % kStepsPerSample == 0;
  result.filename =
      fmt::format("{}/{}/{}__{}__{}.jpg", result.is_key ? "samples" : "sweeps",
                  kCameraNames[camera], scene.name, kCameraNames[camera], result.timestamp_us);
  return result;
}

Matrix4 camera_to_global(const WorldScene& scene, std::size_t camera, double time) {
  return multiply(to_matrix(scene.ego.at(time)), to_matrix(scene.rig[camera].mount));
}

}  // namespace hvd::petrv2
