// The resize of the image augmentation: Pillow's bicubic filter (a = -0.5) widened by the factor of
// reduction, along rows and then along columns, with fixed-point weights and 8 bits in between. The
// same values as Pillow, bit for bit (libtorch's antialiased bicubic differs by a grey level or
// two, and cannot start in the middle of an image). Only the part that the crop keeps is computed.
//
// Pure but for the working memory that an ImageResizer keeps: one for each thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "training/petrv2/data/augmentation.h"
#include "training/petrv2/data/jpeg.h"

namespace hvd::petrv2 {

// The weights of one output pixel along one axis: inputs [first, first + count), in 2^-22.
struct FilterTaps {
  int first = 0;
  int count = 0;
  std::size_t weights = 0;  // of the first, in ResampleFilter::weights
};

struct ResampleFilter {
  std::vector<FilterTaps> taps;  // of outputs [begin, end)
  std::vector<std::int32_t> weights;
};

// From `input_size` to `output_size` pixels, for outputs [begin, end).
[[nodiscard]] ResampleFilter bicubic_filter(int input_size, int output_size, int begin, int end);

class ImageResizer {
 public:
  // Writes (transform.height, transform.width, 3) RGB into `target`; black where the crop reaches
  // beyond the resized image.
  void apply(const RgbImage& source, const ImageTransform& transform,
             std::span<std::uint8_t> target);

 private:
  std::vector<std::uint8_t> columns_;  // needed source rows, kept columns
  std::vector<std::int32_t> sums_;     // of a row
};

}  // namespace hvd::petrv2
