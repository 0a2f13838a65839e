// PETRv2: images of twelve views -> boxes. Backbone and neck, head, losses, decoding; the weights
// live in one set of named tensors. Everything is called from one thread; the backward pass may run
// on libtorch's own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "training/petrv2/batch.h"
#include "training/petrv2/config.h"
#include "training/petrv2/loss/assignment.h"
#include "training/petrv2/model/grid_mask.h"
#include "training/petrv2/model/parameters.h"
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
  at::Tensor boxes;  // (L, B, Q, 10): cx cy log(w) log(l) cz log(h) sin cos vx vy; m, m/s
};

struct TrainResult {
  at::Tensor total;  // scalar, the sum of all terms, with its graph
  // Scalars: loss_cls.d0 .. loss_cls.last, loss_box.*, with denoising dn_loss_cls.*, dn_loss_box.*
  std::vector<std::pair<std::string, at::Tensor>> terms;
  Predictions predictions;  // detached
  LayerAssignments assignments;
};

// Boxes of one sample, best first, on the CPU in fp64.
struct DecodedBoxes {
  at::Tensor boxes;   // (n, 9): x y z (gravity centre) w l h theta vx vy
  at::Tensor scores;  // (n)
  at::Tensor labels;  // (n) int64
};

class Petrv2 {
 public:
  // Weights start as the paper's, from the seed alone. With the device "meta" there are only shapes.
  Petrv2(const ModelConfig& config, at::Device device, at::ScalarType type, std::uint64_t seed);
  ~Petrv2();
  Petrv2(const Petrv2&) = delete;
  Petrv2& operator=(const Petrv2&) = delete;

  [[nodiscard]] const ModelConfig& config() const;
  [[nodiscard]] const std::vector<Parameter>& parameters() const;
  [[nodiscard]] const std::vector<Parameter>& buffers() const;
  [[nodiscard]] const ParameterSet& tensors() const;

  // Weights of convolutions as channels-last. Before optimiser and gradient buckets are made.
  void use_channels_last();

  // (B, 12, H, W, 3) uint8 RGB -> Batch::image: moved to the device, normalised.
  [[nodiscard]] at::Tensor normalise(const at::Tensor& images) const;

  [[nodiscard]] TrainResult forward_train(const Batch& batch, const Normalisers& normalisers,
                                          const ForwardOptions& options);

  // Without gradients, dropout, GridMask and denoising.
  [[nodiscard]] Predictions predict(const Batch& batch, const ForwardOptions& options);

  // Of the last layer: the 300 best of all scores, centre within the position range.
  [[nodiscard]] static std::vector<DecodedBoxes> decode(const Predictions& predictions);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// What a batch adds to the counts behind Normalisers, from the numbers of boxes of its samples.
[[nodiscard]] Normalisers count_positives(const ModelConfig& config,
                                          const std::vector<std::int64_t>& num_boxes);

}  // namespace hvd::petrv2
