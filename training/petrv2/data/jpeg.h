// JPEG to RGB and back, by TurboJPEG. A JPEG that is damaged in any way that the library notices is
// an error, also where it could go on and would give a partly grey image.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hvd::petrv2 {

// rgb: (height, width, 3).
struct RgbImage {
  int height = 0;
  int width = 0;
  std::vector<std::uint8_t> rgb;
};

// Keeps the library's working memory from image to image: one for each thread.
class JpegDecoder {
 public:
  [[nodiscard]] static Result<JpegDecoder> create();

  // Replaces `image`, whose memory is used again. The integer "slow" DCT and smooth chroma, as
  // Pillow and OpenCV decode. Errors say what is wrong with the bytes, not where they are from.
  [[nodiscard]] Result<void> decode(std::string_view jpeg, RgbImage& image);

 private:
  struct Destroy {
    void operator()(void* handle) const;
  };
  explicit JpegDecoder(void* handle) : handle_(handle) {}

  std::unique_ptr<void, Destroy> handle_;
};

// quality 1..100; chroma at half the resolution (4:2:0).
[[nodiscard]] Result<std::string> encode_jpeg(const RgbImage& image, int quality = 90);

}  // namespace hvd::petrv2
