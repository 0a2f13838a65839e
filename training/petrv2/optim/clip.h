// Between backward and the optimiser: undoing the loss scale, the norm of all gradients, whether
// they are finite, and clipping, all on the device without waiting for it. Thread: the trainer's.
#pragma once

#include <cstdint>
#include <vector>

#include "training/torch.h"

namespace hvd::petrv2 {

struct ClipResult {
  at::Tensor norm;  // scalar fp32 (fp64 for fp64 gradients): L2 over all, unscaled, not clipped
  at::Tensor found_inf;  // one fp32 value: 1 if the norm is not finite, else 0
};

// Multiplies the gradients in place by inverse_scale (undefined: 1) and by
// min(1, max_norm / (norm + 1e-6)).
[[nodiscard]] ClipResult clip(const std::vector<at::Tensor>& gradients, double max_norm,
                              const at::Tensor& inverse_scale = {});

// The factor that keeps fp16 gradients of the backbone in range. Doubles after 1,000 good steps in
// a row, halves at a skipped one, never above 65536.
class LossScale {
 public:
  explicit LossScale(at::Device device, double start = 512);
  [[nodiscard]] const at::Tensor& value() const { return value_; }  // one fp32 value
  [[nodiscard]] at::Tensor inverse() const { return value_.reciprocal(); }
  void update(const at::Tensor& found_inf);
  [[nodiscard]] const at::Tensor& good_steps() const { return good_steps_; }  // int32, in a row

 private:
  at::Tensor value_;
  at::Tensor good_steps_;
};

}  // namespace hvd::petrv2
