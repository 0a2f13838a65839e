// What goes into one pass through the model beside the batch, and what comes out.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "training/petrv2/loss/assignment.h"
#include "training/petrv2/model/grid_mask.h"
#include "training/torch.h"

namespace hvd::petrv2 {

// Of backbone and neck; head and losses always compute in the weights' type.
enum class Precision { kFull, kBf16, kFp16 };

// Called with each intermediate result: stem layer1..4 (stage2..5), P4 P5 as (B*12, C, h, w);
// projection log_odds pe3d gate sine pos as (B*12*h*w, C); coords (B*12, h, w, D, 3); query (Q, C);
// decoder.l raw.l class.l box.l as (B*Q, C).
using StageObserver = std::function<void(std::string_view stage, const at::Tensor& value)>;

// assignment[layer][sample]
using LayerAssignments = std::vector<std::vector<Assignment>>;

// Mean counts over all micro-batches and ranks of the step; a loss divides by at least 1.
struct Normalisers {
  double boxes = 1;     // matched boxes: the sum of min(boxes, queries) over a batch's samples
  double dn_boxes = 1;  // denoising copies: groups * boxes
};

struct ForwardOptions {
  Precision precision = Precision::kFull;
  bool has_dropout = true;
  bool has_denoising = true;              // if the configuration has it
  std::optional<GridMaskDraw> grid_mask;  // one mask for the whole batch
  // (M, 3) in (-1, 1), CPU, M = groups * boxes of the batch, group-major; undefined: drawn from
  // libtorch's CPU generator.
  at::Tensor dn_noise;
  StageObserver observer;                                // null: nothing is observed
  const LayerAssignments* forced_assignments = nullptr;  // used instead of the solver's
};

// Layers L, queries Q.
struct Predictions {
  at::Tensor class_logits;  // (L, B, Q, 10)
  at::Tensor boxes;         // (L, B, Q, 10): cx cy log(w) log(l) cz log(h) sin cos vx vy; m, m/s
};

struct TrainResult {
  at::Tensor total;  // scalar, the sum of all terms, with its graph
  // Scalars: loss_cls.d0 .. loss_cls.last, loss_box.*, with denoising dn_loss_cls.*, dn_loss_box.*
  std::vector<std::pair<std::string, at::Tensor>> terms;
  Predictions predictions;  // detached
  LayerAssignments assignments;
};

}  // namespace hvd::petrv2
