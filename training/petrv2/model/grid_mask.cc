#include "training/petrv2/model/grid_mask.h"

#include <algorithm>
#include <cstddef>

namespace hvd::petrv2 {
namespace {

constexpr double kRatio = 0.5;  // stripe to period

// The positions 0..length-1 that a stripe of one axis covers; the stripes are laid on a canvas of
// one and a half times the length, of which the middle is kept.
std::vector<bool> stripes(int length, int period, int shift) {
  const int canvas = length * 3 / 2;
  const int start = (canvas - length) / 2;
  const int width = std::clamp(static_cast<int>(period * kRatio + 0.5), 1, period - 1);
  std::vector<bool> covered(length, false);
  for (int i = 0; i < canvas / period; ++i) {
    const int first = std::max(period * i + shift, start);
    const int end = std::min(period * i + shift + width, start + length);
    for (int at = first; at < end; ++at) covered[at - start] = true;
  }
  return covered;
}

int pick(double uniform, int count) {
  return std::min(static_cast<int>(uniform * count), count - 1);
}

}  // namespace

std::optional<GridMaskDraw> draw_grid_mask(int height, double probability,
                                           const std::array<double, 4>& uniforms) {
  if (height < 3 || uniforms[0] >= probability) return std::nullopt;
  const int period = 2 + pick(uniforms[1], height - 2);
  return GridMaskDraw{period, pick(uniforms[2], period), pick(uniforms[3], period)};
}

std::vector<std::uint8_t> grid_mask(int height, int width, const GridMaskDraw& draw) {
  const std::vector<bool> rows = stripes(height, draw.period, draw.row_shift);
  const std::vector<bool> columns = stripes(width, draw.period, draw.column_shift);
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(height) * width);
  for (int i = 0; i < height; ++i) {
    for (int j = 0; j < width; ++j) {
      mask[static_cast<std::size_t>(i) * width + j] = rows[i] || columns[j];
    }
  }
  return mask;
}

}  // namespace hvd::petrv2
