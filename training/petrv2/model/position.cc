#include "training/petrv2/model/position.h"

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "training/petrv2/model/upload.h"

namespace hvd::petrv2 {
namespace {

constexpr double kNearest = 1.0;  // m, the first depth bin
constexpr double kClampEps = 1e-5;
constexpr double kTemperature = 10000;
constexpr double kTwoPi = 2 * std::numbers::pi;

at::Tensor constant(const std::array<double, 3>& values, const at::TensorOptions& options) {
  return upload(at::tensor(at::ArrayRef<double>(values), at::kDouble), options);
}

// Positions 1..count, (count, channels): as the sines and cosines of the running count.
at::Tensor encode_axis(int count, int channels) {
  const at::TensorOptions fp64 = at::dtype(at::kDouble);
  const at::Tensor t = at::arange(1, count + 1, fp64) / (count + 1e-6) * kTwoPi;
  const at::Tensor exponent = at::arange(0, channels / 2, fp64) * (2.0 / channels);
  const at::Tensor argument = t.unsqueeze(1) / at::pow(kTemperature, exponent);
  return at::cat({argument.sin(), argument.cos()}, 1);
}

}  // namespace

at::Tensor depth_bins(int bins) {
  const double step =
      (kPositionRange.high[0] - kNearest) / (static_cast<double>(bins) * (bins + 1));
  const at::Tensor k = at::arange(bins, at::kDouble);
  return kNearest + step * k * (k + 1);
}

at::Tensor frustum_coords(const at::Tensor& lidar2img, const FeatureGrid& grid, int bins,
                          const at::TensorOptions& options) {
  const at::Tensor inverse = upload(at::linalg_inv(lidar2img), options);  // (V, 4, 4)
  const auto column = [&](int j) {                                        // (V, 1, 1, 3)
    return inverse.slice(1, 0, 3).select(2, j).unsqueeze(1).unsqueeze(1);
  };
  const at::Tensor u = upload(at::arange(grid.width, at::kDouble) * grid.stride, options);
  const at::Tensor v = upload(at::arange(grid.height, at::kDouble) * grid.stride, options);
  // Elementwise on purpose: a matrix product could be rounded to TF32.
  const at::Tensor ray =
      u.view({1, 1, -1, 1}) * column(0) + v.view({1, -1, 1, 1}) * column(1) + column(2);
  const at::Tensor depth = upload(depth_bins(bins), options).view({1, 1, 1, -1, 1});
  const at::Tensor point = ray.unsqueeze(3) * depth + column(3).unsqueeze(3);
  const at::Tensor low = constant(kPositionRange.low, options);
  return (point - low) / (constant(kPositionRange.high, options) - low);
}

at::Tensor inverse_sigmoid(const at::Tensor& x) {
  const at::Tensor inside = x.clamp(0, 1);
  return (inside.clamp_min(kClampEps) / (1 - inside).clamp_min(kClampEps)).log();
}

at::Tensor sine_embedding(int views, const FeatureGrid& grid, int channels) {
  const std::array<std::int64_t, 4> sizes{views, grid.height, grid.width, channels};
  return at::cat(
      {encode_axis(views, channels).view({views, 1, 1, channels}).expand(sizes),
       encode_axis(grid.height, channels).view({1, grid.height, 1, channels}).expand(sizes),
       encode_axis(grid.width, channels).view({1, 1, grid.width, channels}).expand(sizes)},
      3);
}

at::Tensor anchor_embedding(const at::Tensor& anchors, int channels) {
  std::vector<double> scale(channels);
  for (int c = 0; c < channels; ++c) {
    scale[c] = kTwoPi / std::pow(kTemperature, 2.0 * (c / 2) / channels);
  }
  const at::Tensor factor = upload(at::tensor(scale, at::kDouble), anchors.options());
  std::vector<at::Tensor> axes;
  for (const int axis : {1, 0, 2}) {
    const at::Tensor argument = anchors.select(-1, axis).unsqueeze(-1) * factor;
    const at::Tensor even = argument.slice(-1, 0, channels, 2).sin();
    const at::Tensor odd = argument.slice(-1, 1, channels, 2).cos();
    axes.push_back(at::stack({even, odd}, -1).flatten(-2));
  }
  return at::cat(axes, -1);
}

}  // namespace hvd::petrv2
