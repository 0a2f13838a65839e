// Decoding and resizing. The checksums of the resize are those of what Pillow 13 gives for the same
// images: Image.resize(size, BICUBIC), crop, transpose(FLIP_LEFT_RIGHT).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "training/formats/crc32c.h"
#include "training/petrv2/data/image_resize.h"
#include "training/petrv2/data/jpeg.h"
#include "training/petrv2/data/record_set_fixture.h"

namespace hvd::petrv2 {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// Sharp edges everywhere, so that the filter overshoots and clips.
RgbImage formula_image(int height, int width) {
  RgbImage image{height, width, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const int value = x * x * 7 + y * 13 * (c + 1) + x * y * 5 + c * 91;
        image.rgb.push_back(static_cast<std::uint8_t>(value & 255));
      }
    }
  }
  return image;
}

std::vector<std::uint8_t> resize(const RgbImage& image, const ImageTransform& transform) {
  std::vector<std::uint8_t> target(
      static_cast<std::size_t>(transform.height * transform.width * 3));
  ImageResizer().apply(image, transform, target);
  return target;
}

std::uint32_t checksum(const std::vector<std::uint8_t>& bytes) {
  return crc32c({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

struct PillowCase {
  int source_height, source_width;
  int resized_height, resized_width;
  int top, left, height, width;
  bool is_flipped;
  std::uint32_t crc;
};

TEST(ImageResize, GivesWhatPillowGives) {
  for (const PillowCase& c :
       {PillowCase{90, 160, 39, 70, 14, 3, 25, 64, false, 0x545acde3},
        PillowCase{90, 160, 39, 70, 14, 3, 25, 64, true, 0xb6c40f15},
        PillowCase{90, 160, 112, 200, 48, 17, 64, 160, false, 0xdae6c2d7},
        PillowCase{90, 160, 30, 50, 5, 0, 25, 64, true, 0xf9c1bc9e},
        PillowCase{90, 160, 90, 160, 26, 0, 64, 160, false, 0x7f53634a},
        PillowCase{45, 80, 20, 35, -4, 0, 24, 35, false, 0xb5acab39},
        PillowCase{900, 1600, 396, 704, 140, 0, 256, 704, false, 0xc09f6680}}) {
    const ImageTransform transform{.height = c.height,
                                   .width = c.width,
                                   .resized_height = c.resized_height,
                                   .resized_width = c.resized_width,
                                   .top = c.top,
                                   .left = c.left,
                                   .is_flipped = c.is_flipped};
    EXPECT_EQ(checksum(resize(formula_image(c.source_height, c.source_width), transform)), c.crc)
        << c.resized_height << " x " << c.resized_width;
  }
}

TEST(ImageResize, ACropOutsideTheImageIsBlack) {
  const ImageTransform transform{
      .height = 4, .width = 4, .resized_height = 8, .resized_width = 8, .top = 0, .left = 8};
  EXPECT_THAT(resize(formula_image(16, 16), transform), Each(0));
}

TEST(ImageResize, WeightsSumToOne) {
  const ResampleFilter filter = bicubic_filter(1600, 704, 0, 704);
  for (const FilterTaps& taps : filter.taps) {
    std::int64_t sum = 0;
    for (int i = 0; i < taps.count; ++i)
      sum += filter.weights[taps.weights + static_cast<std::size_t>(i)];
    EXPECT_NEAR(static_cast<double>(sum), 1 << 22, taps.count);
    EXPECT_LE(taps.first + taps.count, 1600);
  }
}

TEST(Jpeg, ComesBackNearlyTheSame) {
  const RgbImage image = ramp_image(40, 64, 77);
  const auto jpeg = encode_jpeg(image, 95);
  ASSERT_TRUE(jpeg) << jpeg.error().message;
  auto decoder = JpegDecoder::create();
  RgbImage decoded;
  ASSERT_TRUE(decoder->decode(*jpeg, decoded));
  EXPECT_EQ(decoded.height, 40);
  EXPECT_EQ(decoded.width, 64);
  ASSERT_EQ(decoded.rgb.size(), image.rgb.size());
  for (std::size_t i = 0; i < image.rgb.size(); ++i)
    ASSERT_NEAR(decoded.rgb[i], image.rgb[i], 8) << i;
}

TEST(Jpeg, DamageIsAnErrorNotAGreyImage) {
  const std::string jpeg = *encode_jpeg(formula_image(64, 96), 90);
  auto decoder = JpegDecoder::create();
  RgbImage decoded;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{2}, std::size_t{100}, jpeg.size() / 2, jpeg.size() - 40}) {
    EXPECT_FALSE(decoder->decode(jpeg.substr(0, size), decoded)) << size;
  }
  EXPECT_FALSE(decoder->decode("<html>404</html>", decoded));
  std::string damaged = jpeg;
  damaged[jpeg.size() / 2] = '\xff';
  damaged[jpeg.size() / 2 + 1] = '\x01';
  const auto outcome = decoder->decode(damaged, decoded);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, HasSubstr("the JPEG cannot be decoded"));
  EXPECT_TRUE(decoder->decode(jpeg, decoded));  // and goes on
}

TEST(Jpeg, DecodesARealImage) {
  const char* folder = std::getenv("HVDRUN_FRAME_DIR");
  if (folder == nullptr)
    GTEST_SKIP() << "HVDRUN_FRAME_DIR does not name a folder with a nuScenes frame";
  std::size_t num_images = 0;
  auto decoder = JpegDecoder::create();
  RgbImage decoded;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".jpg") continue;
    const auto outcome = decoder->decode(read_bytes(entry.path()), decoded);
    ASSERT_TRUE(outcome) << entry.path() << ": " << outcome.error().message;
    EXPECT_EQ(decoded.height, 900);
    EXPECT_EQ(decoded.width, 1600);
    ++num_images;
  }
  EXPECT_GE(num_images, 6U);
}

}  // namespace
}  // namespace hvd::petrv2
