// An image with a depth and an owner for every pixel, and the one thing to draw on it: convex
// polygons of one colour. The nearest surface wins whatever the order of drawing, so long boxes
// beside small ones come out right. Thread: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "training/petrv2/data/jpeg.h"
#include "training/petrv2/synth/rig.h"

namespace hvd::petrv2 {

using Colour = std::array<std::uint8_t, 3>;  // R G B

struct ImagePoint {
  double u = 0;  // px, pixel (0, 0) spans [0, 1) x [0, 1)
  double v = 0;
};

// 1 / depth of a plane as seen by a pinhole camera, linear in the image: u_slope u + v_slope v +
// base.
struct InverseDepth {
  double u_slope = 0;  // 1/m/px
  double v_slope = 0;
  double base = 0;  // 1/m
};

class Canvas {
 public:
  static constexpr std::uint16_t kNobody = 0xFFFF;

  explicit Canvas(const ImageSize& size);

  // Everything infinitely far and nobody's; the colours stay until they are painted over. A canvas
  // is used again for many images: its memory is the cost of a new one.
  void clear();

  [[nodiscard]] const RgbImage& image() const { return image_; }
  // Whose surface is seen, by pixel.
  [[nodiscard]] const std::vector<std::uint16_t>& owners() const { return owners_; }

  // The first byte of a row, for who paints the background; three bytes a pixel.
  [[nodiscard]] std::uint8_t* row(int v) { return image_.rgb.data() + offset(0, v) * 3; }

  // Paints the pixels whose middle lies in the polygon where it is nearer than what is there. The
  // number of such pixels inside the image, painted or hidden.
  std::int64_t fill(const std::vector<ImagePoint>& polygon, const InverseDepth& inverse_depth,
                    const Colour& colour, std::uint16_t owner);

 private:
  [[nodiscard]] std::size_t offset(int u, int v) const {
    return static_cast<std::size_t>(v) * static_cast<std::size_t>(image_.width) +
           static_cast<std::size_t>(u);
  }
  void fill_span(int v, int first, int end, const InverseDepth& inverse_depth, const Colour& colour,
                 std::uint16_t owner);

  RgbImage image_;
  std::vector<float> inverse_depth_;
  std::vector<std::uint16_t> owners_;
};

}  // namespace hvd::petrv2
