// Where things are: frustum points of the feature cells, sine embedding of views, rows and columns,
// embedding of anchors, and the limits of the space. All without weights and in full precision.
#pragma once

#include <array>

#include "training/torch.h"

namespace hvd::petrv2 {

// m, lidar frame: boxes are regressed within the point-cloud range; frustum points are normalised
// by the position range, which is also where decoded centres have to lie.
struct Range {
  std::array<double, 3> low, high;
};
constexpr Range kPointCloudRange{{-51.2, -51.2, -5.0}, {51.2, 51.2, 3.0}};
constexpr Range kPositionRange{{-61.2, -61.2, -10.0}, {61.2, 61.2, 10.0}};

struct FeatureGrid {
  int height = 0, width = 0;  // cells
  int stride = 16;            // px
};

// Depth of each bin in metres, (bins) fp64: linearly growing bins from 1 m.
[[nodiscard]] at::Tensor depth_bins(int bins);

// The points seen by each cell at each depth, (V, h, w, bins, 3) in the position range: 0..1
// inside. A cell is where its top left pixel is. lidar2img (V, 4, 4) fp64 on the CPU is inverted
// there in fp64; the rest is computed in options' type and device.
[[nodiscard]] at::Tensor frustum_coords(const at::Tensor& lidar2img, const FeatureGrid& grid,
                                        int bins, const at::TensorOptions& options);

// log(x / (1 - x)) with both sides at least 1e-5.
[[nodiscard]] at::Tensor inverse_sigmoid(const at::Tensor& x);

// (views, h, w, 3 * channels) fp64 on the CPU: view, row and column, each as channels / 2 sines and
// then as many cosines.
[[nodiscard]] at::Tensor sine_embedding(int views, const FeatureGrid& grid, int channels);

// (..., 3) anchors -> (..., 3 * channels) in the order y, x, z; sines and cosines alternate.
[[nodiscard]] at::Tensor anchor_embedding(const at::Tensor& anchors, int channels);

}  // namespace hvd::petrv2
