// The terms of the training loss, all decoder layers at once, from predictions and assignments.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "training/petrv2/batch.h"
#include "training/petrv2/config.h"
#include "training/petrv2/loss/assignment.h"
#include "training/petrv2/model/denoising.h"
#include "training/torch.h"

namespace hvd::petrv2 {

using LossTerms = std::vector<std::pair<std::string, at::Tensor>>;

// Sigmoid focal loss, gamma 2, alpha 0.25, element by element: target bool of the same shape.
[[nodiscard]] at::Tensor focal_loss(const at::Tensor& logits, const at::Tensor& target);

struct LossTargets {
  at::Tensor codes;                 // (all boxes, 10), on the device; non-finite rows are 0
  at::Tensor is_finite;             // (all boxes) 1 or 0, of the same type
  at::Tensor labels;                // (all boxes) int64, CPU
  std::vector<std::int64_t> first;  // of each sample, its first box among all
};

[[nodiscard]] LossTargets make_loss_targets(const std::vector<Targets>& targets,
                                            const at::TensorOptions& options);

// class_logits, boxes (L, B, Q, 10). Terms loss_cls.d0 .. loss_cls.last and loss_box.*; the class
// term is divided by the batch's own number of matched boxes, the box term by box_normaliser, both
// by at least 1.
[[nodiscard]] LossTerms detection_losses(const at::Tensor& class_logits, const at::Tensor& boxes,
                                         const std::vector<std::vector<Assignment>>& assignments,
                                         const LossTargets& targets, const at::Tensor& code_weights,
                                         double box_normaliser);

// class_logits, boxes (L, B, slots, 10). Terms dn_loss_cls.* and dn_loss_box.*.
[[nodiscard]] LossTerms denoising_losses(const at::Tensor& class_logits, const at::Tensor& boxes,
                                         const DenoisingQueries& queries,
                                         const LossTargets& targets, const at::Tensor& code_weights,
                                         double box_normaliser);

}  // namespace hvd::petrv2
