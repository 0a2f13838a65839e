#include "training/petrv2/synth/canvas.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hvd::petrv2 {
namespace {

// The pixels [first, end) of a line of `count` pixels whose middles lie in [low, high).
struct PixelRange {
  int first = 0;
  int end = 0;
};
PixelRange pixels_between(double low, double high, int count) {
  const auto clamp = [&](double edge) {
    return static_cast<int>(std::clamp(std::ceil(edge - 0.5), 0.0, static_cast<double>(count)));
  };
  return {clamp(low), clamp(high)};
}

// Where the horizontal line at v cuts a convex polygon.
struct Cut {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
};
Cut cut_at(const std::vector<ImagePoint>& polygon, double v) {
  Cut cut;
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    const ImagePoint& a = polygon[i];
    const ImagePoint& b = polygon[(i + 1) % polygon.size()];
    if ((a.v <= v) == (b.v <= v)) continue;
    const double u = a.u + (v - a.v) / (b.v - a.v) * (b.u - a.u);
    cut.low = std::min(cut.low, u);
    cut.high = std::max(cut.high, u);
  }
  return cut;
}

}  // namespace

Canvas::Canvas(const ImageSize& size) : image_{size.height, size.width, {}} {
  const std::size_t num_pixels = offset(0, size.height);
  image_.rgb.assign(num_pixels * 3, 0);
  inverse_depth_.resize(num_pixels);
  owners_.resize(num_pixels);
  clear();
}

void Canvas::clear() {
  std::fill(inverse_depth_.begin(), inverse_depth_.end(), 0.0F);
  std::fill(owners_.begin(), owners_.end(), kNobody);
}

std::int64_t Canvas::fill(const std::vector<ImagePoint>& polygon, const InverseDepth& inverse_depth,
                          const Colour& colour, std::uint16_t owner) {
  if (polygon.size() < 3) return 0;
  const auto [top, bottom] =
      std::minmax_element(polygon.begin(), polygon.end(),
                          [](const ImagePoint& a, const ImagePoint& b) { return a.v < b.v; });
  const PixelRange rows = pixels_between(top->v, bottom->v, image_.height);
  std::int64_t num_inside = 0;
  for (int v = rows.first; v < rows.end; ++v) {
    const Cut cut = cut_at(polygon, v + 0.5);
    if (!(cut.low < cut.high)) continue;
    const PixelRange span = pixels_between(cut.low, cut.high, image_.width);
    fill_span(v, span.first, span.end, inverse_depth, colour, owner);
    num_inside += std::max(0, span.end - span.first);
  }
  return num_inside;
}

void Canvas::fill_span(int v, int first, int end, const InverseDepth& inverse_depth,
                       const Colour& colour, std::uint16_t owner) {
  const double row_base = inverse_depth.v_slope * (v + 0.5) + inverse_depth.base;
  for (int u = first; u < end; ++u) {
    const auto nearness = static_cast<float>(inverse_depth.u_slope * (u + 0.5) + row_base);
    const std::size_t pixel = offset(u, v);
    if (nearness <= inverse_depth_[pixel]) continue;
    inverse_depth_[pixel] = nearness;
    owners_[pixel] = owner;
    std::uint8_t* rgb = image_.rgb.data() + pixel * 3;
    rgb[0] = colour[0];
    rgb[1] = colour[1];
    rgb[2] = colour[2];
  }
}

}  // namespace hvd::petrv2
