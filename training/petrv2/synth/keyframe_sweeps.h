// Which image sets of a scene are previous-frame candidates of its samples. Pure.
//
// A step is six images taken at about one time: a key frame's, or the j-th sweep before it of every
// camera. Between two key frames every camera takes about five sweeps (12 Hz against 2 Hz). A
// sample's candidates walk back over five key frames, each time five sweeps and then the key frame:
// up to 30, nearest first, those at positions 5, 11, 17, 23 and 29 being key frames. So a position
// stands for a time: where fewer sweeps were taken, the last one repeats (and if there was none,
// the key frame behind it stands in). More than five: the ones farthest back are left out. The walk
// ends at the scene's first key frame, whose own list is empty.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "training/petrv2/data/sample.h"

namespace hvd::petrv2 {

inline constexpr std::size_t kSweepsPerKeyframe = 5;
inline constexpr std::size_t kKeyframesBack = 5;

// One camera's images of a scene, by time.
struct CameraTrack {
  std::vector<bool> is_key;  // as many true as the scene has samples
};

// Six positions, one in each camera's track.
struct SweepStep {
  std::array<std::size_t, kNumCameras> images{};
  bool is_key = false;
};

struct SceneSweeps {
  std::vector<SweepStep> steps;                  // by time, each once
  std::vector<std::size_t> keyframes;            // by sample: its own step
  std::vector<std::vector<std::size_t>> before;  // by sample: candidate steps, nearest first
};

[[nodiscard]] SceneSweeps arrange_sweeps(const std::array<CameraTrack, kNumCameras>& tracks);

}  // namespace hvd::petrv2
