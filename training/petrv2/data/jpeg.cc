#include "training/petrv2/data/jpeg.h"

#include <turbojpeg.h>

#include <limits>
#include <memory>

namespace hvd::petrv2 {
namespace {

constexpr int kMostPixels = 1 << 28;  // a header that tells more is taken for damage

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

struct DestroyCompressor {
  void operator()(void* handle) const { tjDestroy(handle); }
};

struct FreeBuffer {
  void operator()(unsigned char* buffer) const { tjFree(buffer); }
};

Result<void> check_header(int width, int height) {
  if (width <= 0 || height <= 0 || height > kMostPixels / width) {
    return make_error("the JPEG claims to have {} x {} pixels", width, height);
  }
  return {};
}

}  // namespace

void JpegDecoder::Destroy::operator()(void* handle) const { tjDestroy(handle); }

Result<JpegDecoder> JpegDecoder::create() {
  void* handle = tjInitDecompress();
  if (handle == nullptr) return make_error("start the JPEG decoder: {}", tjGetErrorStr2(nullptr));
  return JpegDecoder(handle);
}

Result<void> JpegDecoder::decode(std::string_view jpeg, RgbImage& image) {
  void* const handle = handle_.get();
  if (jpeg.empty()) return make_error("the JPEG is empty");
  int subsampling = 0;
  int colorspace = 0;
  if (tjDecompressHeader3(handle, bytes_of(jpeg), jpeg.size(), &image.width, &image.height,
                          &subsampling, &colorspace) != 0) {
    return make_error("the JPEG cannot be decoded ({})", tjGetErrorStr2(handle));
  }
  if (auto sane = check_header(image.width, image.height); !sane) return sane;
  image.rgb.resize(std::size_t{3} * static_cast<std::size_t>(image.width) *
                   static_cast<std::size_t>(image.height));
  // A warning (data cut short, or invalid) makes the call fail as an error does.
  if (tjDecompress2(handle, bytes_of(jpeg), jpeg.size(), image.rgb.data(), image.width, 0,
                    image.height, TJPF_RGB, TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING) != 0) {
    return make_error("the JPEG cannot be decoded ({})", tjGetErrorStr2(handle));
  }
  return {};
}

Result<std::string> encode_jpeg(const RgbImage& image, int quality) {
  const std::unique_ptr<void, DestroyCompressor> compressor(tjInitCompress());
  if (!compressor) return make_error("start the JPEG encoder: {}", tjGetErrorStr2(nullptr));
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  const int outcome =
      tjCompress2(compressor.get(), image.rgb.data(), image.width, 0, image.height, TJPF_RGB,
                  &buffer, &size, TJSAMP_420, quality, TJFLAG_ACCURATEDCT);
  const std::unique_ptr<unsigned char, FreeBuffer> owned(buffer);
  if (outcome != 0) return make_error("encode a JPEG: {}", tjGetErrorStr2(compressor.get()));
  return std::string(reinterpret_cast<const char*>(buffer), size);
}

}  // namespace hvd::petrv2
