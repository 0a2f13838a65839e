// GridMask: hides a grid of squares of the image in training, so that the network does not lean on
// few pixels. The mask is a pure function of its draw. Torch-free.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace hvd::petrv2 {

struct GridMaskDraw {
  int period = 2;     // d, px, 2..height-1
  int row_shift = 0;  // 0..period-1
  int column_shift = 0;
};

// uniforms in [0, 1): whether to mask at all, then period, row shift, column shift.
[[nodiscard]] std::optional<GridMaskDraw> draw_grid_mask(int height, double probability,
                                                         const std::array<double, 4>& uniforms);

// (height, width), row-major: 1 where a pixel stays, 0 where it is hidden.
[[nodiscard]] std::vector<std::uint8_t> grid_mask(int height, int width, const GridMaskDraw& draw);

}  // namespace hvd::petrv2
