#include "training/petrv2/model/grid_mask.h"

#include <gtest/gtest.h>

#include <numeric>

namespace hvd::petrv2 {
namespace {

TEST(GridMask, IsTheWorkedExample) {
  const std::vector<std::uint8_t> mask = grid_mask(8, 12, {4, 1, 2});
  const std::vector<std::uint8_t> ones(12, 1);
  const std::vector<std::uint8_t> striped{1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1};
  for (int row = 0; row < 8; ++row) {
    const std::vector<std::uint8_t> got(mask.begin() + row * 12, mask.begin() + row * 12 + 12);
    EXPECT_EQ(got, row == 0 || row == 3 || row == 4 || row == 7 ? ones : striped) << "row " << row;
  }
}

TEST(GridMask, HidesAboutAQuarter) {
  double hidden = 0;
  for (int period = 10; period < 60; ++period) {
    const auto mask = grid_mask(160, 240, {period, period / 3, period / 2});
    hidden += 1.0 - std::accumulate(mask.begin(), mask.end(), 0.0) / mask.size();
  }
  EXPECT_NEAR(hidden / 50, 0.25, 0.03);
}

TEST(GridMask, DrawsStayInTheirRanges) {
  EXPECT_FALSE(draw_grid_mask(320, 0.7, {0.7, 0, 0, 0}));
  EXPECT_FALSE(draw_grid_mask(320, 0.0, {0.0, 0, 0, 0}));
  const auto low = draw_grid_mask(320, 0.7, {0.69, 0, 0, 0});
  ASSERT_TRUE(low);
  EXPECT_EQ(low->period, 2);
  EXPECT_EQ(low->row_shift, 0);
  const auto high = draw_grid_mask(320, 0.7, {0.0, 0.999999, 0.999999, 0.5});
  ASSERT_TRUE(high);
  EXPECT_EQ(high->period, 319);
  EXPECT_EQ(high->row_shift, 318);
  EXPECT_EQ(high->column_shift, 159);
}

}  // namespace
}  // namespace hvd::petrv2
