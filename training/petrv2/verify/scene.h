// The made-up scene of verify: weights by formula, one ring of six cameras now and 2.5 m further
// back before, three boxes.
#pragma once

#include <vector>

#include "training/petrv2/batch.h"
#include "training/petrv2/config.h"
#include "training/petrv2/model/parameters.h"
#include "training/torch.h"

namespace hvd::petrv2 {

constexpr double kSceneTimeDelta = 0.5;  // s

// fp64, CPU.
[[nodiscard]] at::Tensor filled(int number, at::IntArrayRef sizes);

// Every tensor of the set by its formula. bn3_scale multiplies the weight of each bottleneck's
// third batch norm. Returns the last number used by the backbone.
int fill_tensors(const ParameterSet& set, double bn3_scale = 1);

// (samples, 12, 4, 4) fp64, CPU: lidar to pixels of an image of this size.
[[nodiscard]] at::Tensor scene_cameras(std::int64_t num_samples, int height, int width);

// (M, 3): the noise of the denoising queries.
[[nodiscard]] at::Tensor scene_noise(std::int64_t num_copies);

[[nodiscard]] Targets scene_targets();

}  // namespace hvd::petrv2
