// All gradients of a model side by side in one flat tensor, so that one collective and a few fused
// kernels serve them all. Each gradient is a view with the sizes AND strides of its parameter: the
// fused optimiser reads memory by position. Thread: the trainer's.
#pragma once

#include <cstdint>
#include <vector>

#include "training/torch.h"

namespace hvd::petrv2 {

class GradientBuffer {
 public:
  // Of one type and device; each non-overlapping and dense (checked).
  explicit GradientBuffer(std::vector<at::Tensor> parameters);

  // Moves the gradients that backward has left into the buffer and leaves them undefined. A
  // parameter without one counts as zero. Returns how many had none.
  std::int64_t gather();

  [[nodiscard]] at::Tensor& flat() { return flat_; }
  [[nodiscard]] const std::vector<at::Tensor>& views() const { return views_; }

 private:
  const std::vector<at::Tensor> parameters_;
  at::Tensor flat_;  // (n)
  std::vector<at::Tensor> views_;
};

}  // namespace hvd::petrv2
