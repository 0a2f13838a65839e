#include "training/petrv2/data/image_resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace hvd::petrv2 {
namespace {

constexpr int kFractionBits = 22;  // 8 bits of the pixel and 2 of overshoot are left of 32
constexpr std::int32_t kHalf = 1 << (kFractionBits - 1);
constexpr double kBicubicSupport = 2;
constexpr std::size_t kChannels = 3;

double bicubic(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0;
}

std::int32_t to_fixed_point(double weight) {
  const double scaled = weight * (1 << kFractionBits);
  return static_cast<std::int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

std::uint8_t to_byte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kFractionBits, 0, 255));
}

// What of [0, size) a crop of `length` pixels from `start` on keeps.
struct Kept {
  int begin = 0;
  int end = 0;
};

Kept kept_range(int start, int length, int size) {
  return {std::clamp(start, 0, size), std::clamp(start + length, 0, size)};
}

// Filters one row of pixels along x.
void filter_row(const std::uint8_t* row, const ResampleFilter& filter, std::uint8_t* target) {
  for (const FilterTaps& taps : filter.taps) {
    const std::uint8_t* pixel = row + static_cast<std::size_t>(taps.first) * kChannels;
    const std::int32_t* weights = filter.weights.data() + taps.weights;
    std::int32_t red = kHalf;
    std::int32_t green = kHalf;
    std::int32_t blue = kHalf;
    for (int i = 0; i < taps.count; ++i, pixel += kChannels) {
      red += weights[i] * pixel[0];
      green += weights[i] * pixel[1];
      blue += weights[i] * pixel[2];
    }
    *target++ = to_byte(red);
    *target++ = to_byte(green);
    *target++ = to_byte(blue);
  }
}

// sums += weight * row; adjacent bytes, so the compiler makes vectors of it.
void accumulate_row(const std::uint8_t* row, std::int32_t weight, std::vector<std::int32_t>& sums) {
  const std::size_t size = sums.size();
  std::int32_t* const sum = sums.data();
  for (std::size_t i = 0; i < size; ++i) sum[i] += weight * row[i];
}

void mirror_row(std::uint8_t* row, std::size_t width) {
  for (std::size_t left = 0, right = width - 1; left < right; ++left, --right) {
    std::swap_ranges(row + left * kChannels, row + (left + 1) * kChannels, row + right * kChannels);
  }
}

}  // namespace

ResampleFilter bicubic_filter(int input_size, int output_size, int begin, int end) {
  const double scale = static_cast<double>(input_size) / output_size;
  const double widening = std::max(scale, 1.0);
  const double support = kBicubicSupport * widening;
  ResampleFilter filter;
  std::vector<double> weights;
  for (int output = begin; output < end; ++output) {
    const double center = (output + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(center - support + 0.5));
    const int last = std::min(input_size, static_cast<int>(center + support + 0.5));
    weights.clear();
    double sum = 0;
    for (int input = first; input < last; ++input) {
      weights.push_back(bicubic((input - center + 0.5) / widening));
      sum += weights.back();
    }
    filter.taps.push_back({first, last - first, filter.weights.size()});
    for (const double weight : weights) filter.weights.push_back(to_fixed_point(weight / sum));
  }
  return filter;
}

void ImageResizer::apply(const RgbImage& source, const ImageTransform& t,
                         std::span<std::uint8_t> target) {
  const Kept x = kept_range(t.left, t.width, t.resized_width);
  const Kept y = kept_range(t.top, t.height, t.resized_height);
  std::fill(target.begin(), target.end(), std::uint8_t{0});
  if (x.begin == x.end || y.begin == y.end) return;
  const ResampleFilter across = bicubic_filter(source.width, t.resized_width, x.begin, x.end);
  const ResampleFilter down = bicubic_filter(source.height, t.resized_height, y.begin, y.end);
  const int first_row = down.taps.front().first;
  const int end_row = down.taps.back().first + down.taps.back().count;
  const std::size_t kept_bytes = across.taps.size() * kChannels;
  columns_.resize(static_cast<std::size_t>(end_row - first_row) * kept_bytes);
  for (int row = first_row; row < end_row; ++row) {
    filter_row(source.rgb.data() + static_cast<std::size_t>(row) * source.width * kChannels, across,
               columns_.data() + static_cast<std::size_t>(row - first_row) * kept_bytes);
  }
  const std::size_t row_bytes = static_cast<std::size_t>(t.width) * kChannels;
  for (std::size_t i = 0; i < down.taps.size(); ++i) {
    const FilterTaps& taps = down.taps[i];
    sums_.assign(kept_bytes, kHalf);
    for (int k = 0; k < taps.count; ++k) {
      accumulate_row(
          columns_.data() + static_cast<std::size_t>(taps.first - first_row + k) * kept_bytes,
          down.weights[taps.weights + static_cast<std::size_t>(k)], sums_);
    }
    std::uint8_t* const row =
        target.data() + (static_cast<std::size_t>(y.begin - t.top) + i) * row_bytes;
    std::transform(sums_.begin(), sums_.end(),
                   row + static_cast<std::size_t>(x.begin - t.left) * kChannels, to_byte);
    if (t.is_flipped) mirror_row(row, static_cast<std::size_t>(t.width));
  }
}

}  // namespace hvd::petrv2
