#include "training/petrv2/synth/keyframe_sweeps.h"

#include <algorithm>

namespace hvd::petrv2 {
namespace {

using KeyPositions = std::array<std::vector<std::size_t>, kNumCameras>;

KeyPositions find_keyframes(const std::array<CameraTrack, kNumCameras>& tracks) {
  KeyPositions keys;
  for (std::size_t camera = 0; camera < tracks.size(); ++camera) {
    const auto& is_key = tracks[camera].is_key;
    for (std::size_t i = 0; i < is_key.size(); ++i) {
      if (is_key[i]) keys[camera].push_back(i);
    }
  }
  return keys;
}

// How many sweeps all cameras have between key frame `key` and the one before it.
std::size_t count_sweeps(const KeyPositions& keys, std::size_t key) {
  std::size_t count = kSweepsPerKeyframe;
  for (const auto& positions : keys) {
    count = std::min(count, positions[key] - positions[key - 1] - 1);
  }
  return count;
}

// The images `back` before key frame `key` in every camera's track.
SweepStep step_before(const KeyPositions& keys, std::size_t key, std::size_t back) {
  SweepStep step;
  step.is_key = back == 0;
  for (std::size_t camera = 0; camera < keys.size(); ++camera) {
    step.images[camera] = keys[camera][key] - back;
  }
  return step;
}

// The candidates between key frame `key` and the one before it, that one included, nearest first.
void append_interval(const SceneSweeps& scene, std::size_t key, std::vector<std::size_t>& list) {
  const std::size_t newest = scene.keyframes[key];
  const std::size_t oldest = scene.keyframes[key - 1];
  const std::size_t last_sweep =
      std::min(oldest + 1, newest - 1);  // the key frame if there is none
  for (std::size_t back = 1; back <= kSweepsPerKeyframe; ++back) {
    list.push_back(back > newest - last_sweep ? last_sweep : newest - back);
  }
  list.push_back(oldest);
}

}  // namespace

SceneSweeps arrange_sweeps(const std::array<CameraTrack, kNumCameras>& tracks) {
  const KeyPositions keys = find_keyframes(tracks);
  SceneSweeps scene;
  for (std::size_t key = 0; key < keys[0].size(); ++key) {
    for (std::size_t back = key == 0 ? 0 : count_sweeps(keys, key); back > 0; --back) {
      scene.steps.push_back(step_before(keys, key, back));
    }
    scene.keyframes.push_back(scene.steps.size());
    scene.steps.push_back(step_before(keys, key, 0));
  }
  scene.before.resize(keys[0].size());
  for (std::size_t sample = 0; sample < scene.before.size(); ++sample) {
    const std::size_t first = sample - std::min(sample, kKeyframesBack);
    for (std::size_t key = sample; key > first; --key) {
      append_interval(scene, key, scene.before[sample]);
    }
  }
  return scene;
}

}  // namespace hvd::petrv2
