// The tensors of a model under their checkpoint names (those of mmdet's PETR), in a fixed order:
// the order of execution in backbone and neck, then the head. The set hands tensors to the modules
// at construction and keeps a handle on each: Tensor::set_data changes both.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "training/torch.h"

namespace hvd::petrv2 {

// What a tensor is decides how it starts.
enum class TensorRole {
  kConvWeight,
  kKaimingConvWeight,  // of a ResNet: normal, by the fan out
  kConvBias,
  kLinearWeight,
  kLinearBias,
  kAttentionWeight,  // in the transformer: Xavier-uniform, biases zero
  kAttentionBias,
  kNeckWeight,  // Xavier-uniform convolution, bias zero
  kNeckBias,
  kBatchNormWeight,
  kResidualNormWeight,  // the last of a residual branch
  kBatchNormBias,
  kBatchNormMean,
  kBatchNormVariance,
  kLayerNormWeight,
  kLayerNormBias,
  kAnchors,
  kClassBias,  // of the last layer of a class branch
  kCodeWeights,
};

struct Parameter {
  std::string name;
  at::Tensor tensor;
  bool is_trainable = true;
  bool is_backbone = false;  // its learning rate has the backbone's factor
  TensorRole role = TensorRole::kLinearWeight;
};

class ParameterSet {
 public:
  ParameterSet(at::Device device, at::ScalarType type) : options_(at::device(device).dtype(type)) {}

  // A new tensor, not yet filled; it requires a gradient if it is trainable.
  at::Tensor add(const std::string& name, at::IntArrayRef sizes, TensorRole role,
                 bool is_trainable = true);
  // A tensor that is stored but is no parameter: statistics of a batch norm.
  at::Tensor add_buffer(const std::string& name, at::IntArrayRef sizes, TensorRole role);

  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  [[nodiscard]] const std::vector<Parameter>& buffers() const { return buffers_; }
  // Parameters and buffers together, in the order in which they were added.
  [[nodiscard]] std::vector<Parameter> all() const;

  // Every tensor by its role, from a generator of this seed alone: the same on every device, and
  // the branches of all decoder layers start as copies of the first.
  void initialise(std::uint64_t seed);

 private:
  at::TensorOptions options_;
  std::vector<Parameter> parameters_;
  std::vector<Parameter> buffers_;
  std::vector<std::pair<bool, std::size_t>> order_;  // is it a buffer, and its place among its kind
};

}  // namespace hvd::petrv2
