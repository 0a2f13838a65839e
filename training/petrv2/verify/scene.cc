#include "training/petrv2/verify/scene.h"

#include <cmath>
#include <numbers>

#include "training/petrv2/verify/filler.h"

namespace hvd::petrv2 {
namespace {

// Value = offset + scale * u.
struct Formula {
  double offset = 0, scale = 1;
};

Formula formula_of(const Parameter& tensor, double bn3_scale) {
  const bool is_head = tensor.name.starts_with("pts_bbox_head.");
  switch (tensor.role) {
    case TensorRole::kConvWeight:
    case TensorRole::kKaimingConvWeight:
    case TensorRole::kNeckWeight:
    case TensorRole::kLinearWeight:
    case TensorRole::kAttentionWeight: {
      const double fan_in = static_cast<double>(tensor.tensor.numel() / tensor.tensor.size(0));
      return {0, std::sqrt((is_head ? 3 : 6) / fan_in)};
    }
    case TensorRole::kConvBias:
    case TensorRole::kLinearBias:
    case TensorRole::kAttentionBias:
    case TensorRole::kNeckBias:
    case TensorRole::kClassBias:
    case TensorRole::kLayerNormBias:
      return {0, 0.02};
    case TensorRole::kLayerNormWeight:
      return {1, 0.02};
    case TensorRole::kBatchNormWeight:
    case TensorRole::kResidualNormWeight: {
      const double scale = tensor.name.ends_with(".bn3.weight") ? bn3_scale : 1;
      return {scale, 0.1 * scale};
    }
    case TensorRole::kBatchNormVariance:
      return {1, 0.1};
    case TensorRole::kBatchNormBias:
    case TensorRole::kBatchNormMean:
      return {0, 0.1};
    case TensorRole::kAnchors:
      return {0.5, 0.45};
    case TensorRole::kCodeWeights:
      break;
  }
  return {};
}

at::Tensor matrix(std::initializer_list<double> values, std::int64_t rows) {
  return at::tensor(std::vector<double>(values), at::kDouble).view({rows, -1});
}

// (4, 4)
at::Tensor camera(int view, int height, int width) {
  const double angle = std::numbers::pi / 3 * (view % 6);
  const double c = std::cos(angle), s = std::sin(angle);
  const at::Tensor rotation =
      matrix({1, 0, 0, 0, 0, -1, 0, 1, 0}, 3).matmul(matrix({c, s, 0, -s, c, 0, 0, 0, 1}, 3));
  const at::Tensor centre = matrix({-0.5 * s, 0.5 * c - (view >= 6 ? 2.5 : 0), -0.3}, 3);
  const double focal = 0.55 * width;
  const at::Tensor intrinsic = matrix({focal, 0, width / 2.0, 0, focal, height / 2.0, 0, 0, 1}, 3);
  at::Tensor result = at::eye(4, at::kDouble);
  result.slice(0, 0, 3).slice(1, 0, 3).copy_(intrinsic.matmul(rotation));
  result.slice(0, 0, 3).slice(1, 3, 4).copy_(-intrinsic.matmul(rotation).matmul(centre));
  return result;
}

}  // namespace

at::Tensor filled(int number, at::IntArrayRef sizes) {
  const auto count = static_cast<std::size_t>(c10::multiply_integers(sizes));
  return at::tensor(fill_values(static_cast<std::uint32_t>(number), count), at::kDouble)
      .view(sizes);
}

int fill_tensors(const ParameterSet& set, double bn3_scale) {
  const at::NoGradGuard no_grad;
  HeadNumbering head;
  int next = kFirstBackboneNumber, last_of_backbone = 0;
  for (const Parameter& tensor : set.all()) {
    const bool is_head = tensor.name.starts_with("pts_bbox_head.");
    const int number = is_head ? head.number(tensor.name) : next++;
    if (tensor.is_backbone) last_of_backbone = number;
    if (number < 0) continue;
    const Formula formula = formula_of(tensor, bn3_scale);
    tensor.tensor.copy_(filled(number, tensor.tensor.sizes()) * formula.scale + formula.offset);
  }
  return last_of_backbone;
}

at::Tensor scene_cameras(std::int64_t num_samples, int height, int width) {
  std::vector<at::Tensor> views;
  for (int view = 0; view < kNumViews; ++view) views.push_back(camera(view, height, width));
  return at::stack(views).unsqueeze(0).repeat({num_samples, 1, 1, 1});
}

at::Tensor scene_noise(std::int64_t num_copies) {
  return filled(kNoiseNumber, {num_copies, 3}) * 0.6;
}

Targets scene_targets() {
  return {matrix({10,  -5,   -1, 1.9, 4.5, 1.6, .3, 2,   -1, -20, 12,  -.5, .7, .8,
                  1.7, -1.2, .1, 1.2, 3,   30,  0,  2.5, 8,  3.2, 2.8, 0,   5},
                 3),
          at::tensor(std::vector<std::int64_t>{0, 8, 3}, at::kLong)};
}

}  // namespace hvd::petrv2
