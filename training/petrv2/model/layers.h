// The small parts that modules are made of: handles on weights, called like functions.
#pragma once

#include <string>

#include "training/petrv2/model/parameters.h"
#include "training/torch.h"

namespace hvd::petrv2 {

constexpr double kNormEps = 1e-5;  // of batch norms and layer norms alike

struct Linear {
  Linear(ParameterSet& set, const std::string& name, int in, int out,
         TensorRole weight_role = TensorRole::kLinearWeight,
         TensorRole bias_role = TensorRole::kLinearBias)
      : weight(set.add(name + ".weight", {out, in}, weight_role)),
        bias(set.add(name + ".bias", {out}, bias_role)) {}

  at::Tensor operator()(const at::Tensor& x) const { return at::linear(x, weight, bias); }

  at::Tensor weight;  // (out, in)
  at::Tensor bias;
};

// A 1x1 convolution that is applied to tokens: (..., in) -> (..., out). Its weight has the shape of
// the convolution, as in checkpoints.
struct TokenConv {
  TokenConv(ParameterSet& set, const std::string& name, int in, int out)
      : weight(set.add(name + ".weight", {out, in, 1, 1}, TensorRole::kConvWeight)),
        bias(set.add(name + ".bias", {out}, TensorRole::kConvBias)) {}

  at::Tensor operator()(const at::Tensor& x) const {
    return at::linear(x, weight.flatten(1), bias);
  }

  at::Tensor weight;  // (out, in, 1, 1)
  at::Tensor bias;
};

struct LayerNorm {
  LayerNorm(ParameterSet& set, const std::string& name, int width)
      : weight(set.add(name + ".weight", {width}, TensorRole::kLayerNormWeight)),
        bias(set.add(name + ".bias", {width}, TensorRole::kLayerNormBias)) {}

  at::Tensor operator()(const at::Tensor& x) const {
    return at::layer_norm(x, weight.sizes(), weight, bias, kNormEps);
  }

  at::Tensor weight, bias;
};

// A convolution of the neck, with bias.
struct Conv {
  Conv(ParameterSet& set, const std::string& name, int in, int out, int kernel)
      : weight(set.add(name + ".weight", {out, in, kernel, kernel}, TensorRole::kNeckWeight)),
        bias(set.add(name + ".bias", {out}, TensorRole::kNeckBias)),
        padding(kernel / 2) {}

  at::Tensor operator()(const at::Tensor& x) const {
    return at::conv2d(x, weight, bias, 1, padding);
  }

  at::Tensor weight, bias;
  int padding;
};

struct ConvShape {
  int in = 0, out = 0;
  int kernel = 1;
  int stride = 1;  // the padding is kernel / 2
};

// A convolution without bias and a batch norm whose statistics never change. The norm is folded
// into weight and bias of the convolution at each call: no pass over the image of its own, nothing
// saved for it, and scale and shift still get their exact gradients where they train.
struct ConvNorm {
  ConvNorm(ParameterSet& set, const std::string& conv, const std::string& norm,
           const ConvShape& shape, bool has_trainable_norm, TensorRole conv_role,
           TensorRole norm_role = TensorRole::kBatchNormWeight)
      : weight(set.add(conv + ".weight", {shape.out, shape.in, shape.kernel, shape.kernel},
                       conv_role)),
        norm_weight(set.add(norm + ".weight", {shape.out}, norm_role, has_trainable_norm)),
        norm_bias(
            set.add(norm + ".bias", {shape.out}, TensorRole::kBatchNormBias, has_trainable_norm)),
        mean(set.add_buffer(norm + ".running_mean", {shape.out}, TensorRole::kBatchNormMean)),
        variance(
            set.add_buffer(norm + ".running_var", {shape.out}, TensorRole::kBatchNormVariance)),
        stride(shape.stride),
        padding(shape.kernel / 2) {}

  at::Tensor operator()(const at::Tensor& x) const {
    const at::Tensor scale = norm_weight * (variance + kNormEps).rsqrt();
    const at::Tensor shift = norm_bias - mean * scale;
    return at::conv2d(x, weight * scale.view({-1, 1, 1, 1}), shift, stride, padding);
  }

  at::Tensor weight;
  at::Tensor norm_weight, norm_bias;
  at::Tensor mean, variance;
  int stride, padding;
};

}  // namespace hvd::petrv2
