#include "training/petrv2/synth/canvas.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace hvd::petrv2 {
namespace {

constexpr InverseDepth kOneMetre = {0, 0, 1};
constexpr InverseDepth kTwoMetres = {0, 0, 0.5};
constexpr Colour kRed = {255, 0, 0};
constexpr Colour kBlue = {0, 0, 255};

std::int64_t owned_by(const Canvas& canvas, std::uint16_t owner) {
  return std::count(canvas.owners().begin(), canvas.owners().end(), owner);
}

TEST(Canvas, FillsPixelsWhoseMiddleIsInside) {
  Canvas canvas({10, 8});
  // Middles from 2.5 to 4.5 across and from 1.5 to 5.5 down: 3 x 5.
  const std::vector<ImagePoint> box = {{1.6, 1.2}, {5.4, 1.2}, {5.4, 6.4}, {1.6, 6.4}};
  EXPECT_EQ(canvas.fill(box, kOneMetre, kRed, 7), 3 * 5);
  EXPECT_EQ(owned_by(canvas, 7), 15);
  EXPECT_EQ(canvas.owners()[1 * 10 + 2], 7);
  EXPECT_EQ(canvas.owners()[0 * 10 + 2], Canvas::kNobody);
  EXPECT_EQ(canvas.image().rgb[(1 * 10 + 2) * 3], 255);
  EXPECT_EQ(canvas.image().rgb[(0 * 10 + 2) * 3], 0);
}

TEST(Canvas, NeighboursShareNoPixelAndLeaveNoGap) {
  Canvas canvas({20, 20});
  const ImagePoint a{0, 0}, b{20, 3.3}, c{20, 20}, d{0, 20};
  const std::int64_t upper = canvas.fill({a, b, c}, kOneMetre, kRed, 1);
  const std::int64_t lower = canvas.fill({a, c, d}, kOneMetre, kBlue, 2);
  Canvas whole({20, 20});
  EXPECT_EQ(upper + lower, whole.fill({a, b, c, d}, kOneMetre, kRed, 1));
  EXPECT_EQ(owned_by(canvas, 1) + owned_by(canvas, 2), owned_by(whole, 1));
}

TEST(Canvas, NearestWinsInEitherOrder) {
  const std::vector<ImagePoint> box = {{0, 0}, {4, 0}, {4, 4}, {0, 4}};
  for (const bool near_first : {true, false}) {
    Canvas canvas({4, 4});
    canvas.fill(box, near_first ? kOneMetre : kTwoMetres, kRed, near_first ? 1 : 2);
    // A hidden surface is counted all the same.
    EXPECT_EQ(canvas.fill(box, near_first ? kTwoMetres : kOneMetre, kBlue, near_first ? 2 : 1), 16);
    EXPECT_EQ(owned_by(canvas, 1), 16);
  }
}

TEST(Canvas, CrossingSurfacesAreCutWhereTheyMeet) {
  Canvas canvas({10, 1});
  const std::vector<ImagePoint> row = {{0, 0}, {10, 0}, {10, 1}, {0, 1}};
  canvas.fill(row, kTwoMetres, kRed, 1);
  canvas.fill(row, {0.1, 0, 0.15}, kBlue, 2);  // nearer than two metres from u = 3.5 on
  EXPECT_EQ(owned_by(canvas, 1), 4);
  EXPECT_EQ(canvas.owners()[3], 1);
  EXPECT_EQ(canvas.owners()[4], 2);
}

TEST(Canvas, CutsWhatIsOutside) {
  Canvas canvas({10, 10});
  const std::vector<ImagePoint> huge = {{-1e6, -1e6}, {1e6, -1e6}, {1e6, 1e6}, {-1e6, 1e6}};
  EXPECT_EQ(canvas.fill(huge, kOneMetre, kRed, 1), 100);
  const std::vector<ImagePoint> beside = {{-5, 2}, {-1, 2}, {-1, 8}};
  EXPECT_EQ(canvas.fill(beside, kOneMetre, kRed, 1), 0);
  EXPECT_EQ(canvas.fill({{1, 1}, {5, 5}}, kOneMetre, kRed, 1), 0);
}

}  // namespace
}  // namespace hvd::petrv2
