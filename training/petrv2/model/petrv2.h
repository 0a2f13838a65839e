// PETRv2: images of twelve views -> boxes. Backbone and neck, head, losses, decoding; the weights
// live in one set of named tensors. Everything is called from one thread; the backward pass may run
// on libtorch's own.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "training/petrv2/batch.h"
#include "training/petrv2/config.h"
#include "training/petrv2/model/forward.h"
#include "training/petrv2/model/parameters.h"
#include "training/torch.h"

namespace hvd::petrv2 {

// Boxes of one sample, best first, on the CPU in fp64.
struct DecodedBoxes {
  at::Tensor boxes;   // (n, 9): x y z (gravity centre) w l h theta vx vy
  at::Tensor scores;  // (n)
  at::Tensor labels;  // (n) int64
};

class Petrv2 {
 public:
  // Weights start as the paper's, from the seed alone. With the device "meta" there are only
  // shapes.
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
