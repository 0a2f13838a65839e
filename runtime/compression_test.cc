#include "runtime/compression.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "runtime/half_float.h"

namespace hvd {
namespace {

TEST(Compression, OnlyFloat32OfLaterBucketsIsCompressed) {
  for (const Compression wish : {Compression::kFloat16, Compression::kBfloat16}) {
    EXPECT_TRUE(wire_format(DataType::kFloat32, false, wish, 4).is_compressed);
    EXPECT_FALSE(wire_format(DataType::kFloat32, true, wish, 4).is_compressed);
    for (const DataType type : {DataType::kFloat64, DataType::kFloat16, DataType::kBfloat16,
                                DataType::kInt32, DataType::kInt64, DataType::kUint8}) {
      const WireFormat format = wire_format(type, false, wish, 4);
      EXPECT_FALSE(format.is_compressed) << name_of(type);
      EXPECT_EQ(format.type, type);
    }
  }
  EXPECT_FALSE(wire_format(DataType::kFloat32, false, Compression::kNone, 4).is_compressed);
  EXPECT_EQ(wire_format(DataType::kFloat32, false, Compression::kFloat16, 4).type,
            DataType::kFloat16);
  EXPECT_EQ(wire_format(DataType::kFloat32, false, Compression::kBfloat16, 4).type,
            DataType::kBfloat16);
}

TEST(Compression, EveryFloat16IsSummedBetweenTwoRoots) {
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    const WireFormat format = wire_format(type, false, Compression::kFloat16, 16);
    EXPECT_EQ(format.op, ReduceOp::kSum);
    EXPECT_EQ(format.scale, 0.25F);
  }
  const WireFormat bfloat = wire_format(DataType::kFloat32, false, Compression::kBfloat16, 16);
  EXPECT_EQ(bfloat.op, ReduceOp::kAverage);
  EXPECT_EQ(bfloat.scale, 1);
}

// The mean of equal numbers of `num_ranks` ranks, summed in float and rounded once.
float mean_of_equal(float value, const WireFormat& format, int num_ranks) {
  Float16 wire{};
  compress(&value, &wire, 1, format);
  float sum = 0;
  for (int rank = 0; rank < num_ranks; ++rank) sum += to_float(wire);
  wire = to_float16(sum);
  float mean = 0;
  decompress(&wire, &mean, 1, format);
  return mean;
}

TEST(Compression, LargeAndSmallMeansOf32RanksSurviveInFloat16) {
  const WireFormat format = wire_format(DataType::kFloat32, false, Compression::kFloat16, 32);
  EXPECT_NEAR(mean_of_equal(4096, format, 32), 4096, 4096 * .005);
  EXPECT_NEAR(mean_of_equal(1e-6F, format, 32), 1e-6, 1e-6 * .05);
  EXPECT_TRUE(std::isinf(mean_of_equal(std::numeric_limits<float>::infinity(), format, 32)));
  EXPECT_TRUE(std::isnan(mean_of_equal(std::nanf(""), format, 32)));
}

TEST(Compression, BackAndForthRoundsOnce) {
  const std::array<float, 5> values{0, 1, -1.5F, 3.1415926F, 1e-3F};
  for (const Compression wish : {Compression::kFloat16, Compression::kBfloat16}) {
    const WireFormat format = wire_format(DataType::kFloat32, false, wish, 1);
    std::array<Float16, 5> wire{};
    std::array<float, 5> back{};
    compress(values.data(), wire.data(), values.size(), format);
    decompress(wire.data(), back.data(), values.size(), format);
    const float precision = wish == Compression::kFloat16 ? 1.0F / 2048 : 1.0F / 256;
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(back[i], values[i], std::abs(values[i]) * precision);
    }
    EXPECT_EQ(back[2], -1.5F);
  }
}

}  // namespace
}  // namespace hvd
