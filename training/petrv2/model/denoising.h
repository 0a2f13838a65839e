// Denoising queries (DN): noisy copies of the true boxes that the decoder learns to put right,
// beside the learned queries and unseen by them. Only in training.
#pragma once

#include <vector>

#include "training/petrv2/batch.h"
#include "training/petrv2/config.h"
#include "training/torch.h"

namespace hvd::petrv2 {

// M = groups * boxes of the batch, group-major. Slots = groups * the most boxes of a sample; copy i
// of group g of a sample stands in slot g * most + i of that sample.
struct DenoisingQueries {
  int num_slots = 0;   // 0: the batch has no boxes
  at::Tensor anchors;  // (B, slots, 3) in 0..1; unused slots are 0
  at::Tensor mask;     // (slots + Q, slots + Q) bool, true = may attend
  at::Tensor slots;    // (M) int64: b * slots + slot
  at::Tensor labels;   // (M) int64: class, or kNumClasses where the noise went too far
  at::Tensor boxes;    // (M) int64: which box, counted over the samples of the batch
};

// noise (M, 3) fp64 on the CPU, in (-1, 1). Tensors come out on the device of options, anchors in
// its type.
[[nodiscard]] DenoisingQueries make_denoising_queries(const std::vector<Targets>& targets,
                                                      const at::Tensor& noise,
                                                      const ModelConfig& config,
                                                      const at::TensorOptions& options);

}  // namespace hvd::petrv2
