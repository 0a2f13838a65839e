// A small data set of its own in the layout of nuScenes: made-up scenes whose images show their
// boxes, so that a network can learn class, place, size, heading and speed from them. Deterministic
// in the plan. The tables come last and under a temporary name, so an interrupted run leaves no
// data set.
#pragma once

#include <cstddef>
#include <string>

#include "base/status.h"
#include "training/petrv2/synth/world.h"

namespace hvd::petrv2 {

inline constexpr const char* kSynthVersion = "v1.0-mini";

struct SynthReport {
  std::size_t num_scenes = 0;
  std::size_t num_samples = 0;
  std::size_t num_images = 0;
  std::size_t num_objects = 0;
};

// Into `folder`, made if need be, which must hold no data set: tables in v1.0-mini/, images in
// samples/ and sweeps/, scene lists splits/mini_train.txt and, of two scenes or more,
// splits/mini_val.txt (the last quarter).
[[nodiscard]] Result<SynthReport> write_synth_dataset(const WorldPlan& plan,
                                                      const std::string& folder,
                                                      unsigned num_threads);

}  // namespace hvd::petrv2
