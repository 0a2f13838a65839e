// What one forward pass of the training takes: images, cameras, times and boxes of B samples.
#pragma once

#include <vector>

#include "training/torch.h"

namespace hvd::petrv2 {

constexpr int kNumViews = 12;  // six cameras now, then the same six a moment earlier

// The boxes of one sample in the lidar frame.
struct Targets {
  // (G, 9) fp64, CPU: x y z (gravity centre, m), w l h (m), theta (rad), vx vy (m/s), with
  // theta = -psi - pi/2 for the heading psi of nuScenes.
  at::Tensor boxes;
  at::Tensor labels;  // (G) int64, CPU: index of the class, 0..9
};

struct Batch {
  at::Tensor image;       // (B, 12, 3, H, W) on the model's device, normalised; the weights' type
  at::Tensor lidar2img;   // (B, 12, 4, 4) fp64, CPU: with every augmentation of image and boxes
  at::Tensor time_delta;  // (B) fp64, CPU: seconds from the earlier frame to the current one, > 0
  std::vector<Targets> targets;  // B of them; not looked at by predict()
};

}  // namespace hvd::petrv2
