#include "training/petrv2/model/parameters.h"

#include <ATen/CPUGeneratorImpl.h>

#include <cmath>
#include <map>

namespace hvd::petrv2 {
namespace {

// A batch norm with fixed statistics does not keep a sum of many branches in scale, so each branch
// starts small. (Not zero: where scale and shift are frozen too, zero would stay for ever.)
constexpr double kResidualStart = 0.2;
constexpr double kClassBiasStart = -4.59511985013459;  // -log(99): every class at one per cent

struct Fans {
  double in = 1, out = 1;
};

Fans fans_of(const at::Tensor& weight) {
  const double window =
      weight.dim() == 4 ? static_cast<double>(weight.size(2) * weight.size(3)) : 1;
  return {weight.size(1) * window, weight.size(0) * window};
}

bool is_weight(TensorRole role) {
  return role == TensorRole::kConvWeight || role == TensorRole::kKaimingConvWeight ||
         role == TensorRole::kLinearWeight || role == TensorRole::kAttentionWeight ||
         role == TensorRole::kNeckWeight;
}

at::Tensor start_value(const Parameter& parameter, const Fans& fans, at::Generator& generator) {
  at::Tensor value = at::zeros(parameter.tensor.sizes(), at::kFloat);
  const auto uniform = [&](double bound) { return value.uniform_(-bound, bound, generator); };
  switch (parameter.role) {
    case TensorRole::kConvWeight:
    case TensorRole::kLinearWeight:
    case TensorRole::kConvBias:
    case TensorRole::kLinearBias:
      return uniform(1 / std::sqrt(fans.in));
    case TensorRole::kKaimingConvWeight:
      return value.normal_(0, std::sqrt(2 / fans.out), generator);
    case TensorRole::kAttentionWeight:
    case TensorRole::kNeckWeight:
      return uniform(std::sqrt(6 / (fans.in + fans.out)));
    case TensorRole::kBatchNormWeight:
    case TensorRole::kBatchNormVariance:
    case TensorRole::kLayerNormWeight:
      return value.fill_(1);
    case TensorRole::kResidualNormWeight:
      return value.fill_(kResidualStart);
    case TensorRole::kAnchors:
      return value.uniform_(0, 1, generator);
    case TensorRole::kClassBias:
      return value.fill_(kClassBiasStart);
    case TensorRole::kAttentionBias:
    case TensorRole::kNeckBias:
    case TensorRole::kBatchNormBias:
    case TensorRole::kBatchNormMean:
    case TensorRole::kLayerNormBias:
      return value;
    case TensorRole::kCodeWeights:
      return parameter.tensor.to(at::kCPU);  // the configuration's, set by the head
  }
  return value;
}

// "...cls_branches.3.0.weight" -> "...cls_branches.0.0.weight"; other names unchanged.
std::string name_in_first_branch(std::string name) {
  for (const char* branches : {"cls_branches.", "reg_branches."}) {
    const std::size_t at = name.find(branches);
    if (at == std::string::npos) continue;
    const std::size_t begin = at + std::string_view(branches).size();
    return name.replace(begin, name.find('.', begin) - begin, "0");
  }
  return name;
}

}  // namespace

at::Tensor ParameterSet::add(const std::string& name, at::IntArrayRef sizes, TensorRole role,
                             bool is_trainable) {
  at::Tensor tensor = at::zeros(sizes, options_).set_requires_grad(is_trainable);
  order_.emplace_back(false, parameters_.size());
  parameters_.push_back({name, tensor, is_trainable, name.starts_with("img_backbone."), role});
  return tensor;
}

at::Tensor ParameterSet::add_buffer(const std::string& name, at::IntArrayRef sizes,
                                    TensorRole role) {
  at::Tensor tensor = at::zeros(sizes, options_);
  order_.emplace_back(true, buffers_.size());
  buffers_.push_back({name, tensor, false, name.starts_with("img_backbone."), role});
  return tensor;
}

std::vector<Parameter> ParameterSet::all() const {
  std::vector<Parameter> tensors;
  for (const auto& [is_buffer, at] : order_) {
    tensors.push_back(is_buffer ? buffers_[at] : parameters_[at]);
  }
  return tensors;
}

void ParameterSet::initialise(std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  at::Generator generator = at::detail::createCPUGenerator(seed);
  std::map<std::string, at::Tensor> values;
  Fans fans;
  for (const Parameter& parameter : all()) {
    if (parameter.tensor.is_meta()) return;
    const std::string first = name_in_first_branch(parameter.name);
    if (first != parameter.name) {
      parameter.tensor.copy_(values.at(first));
      continue;
    }
    if (is_weight(parameter.role)) fans = fans_of(parameter.tensor);  // its bias comes next
    values[first] = start_value(parameter, fans, generator);
    parameter.tensor.copy_(values[first]);
  }
}

}  // namespace hvd::petrv2
