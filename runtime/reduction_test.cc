#include "runtime/reduction.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/half_float.h"

namespace hvd {
namespace {

using testing::HasSubstr;

// The value of binary16 bits from the definition of the format.
double value_of_half(unsigned bits) {
  const int exponent = static_cast<int>(bits >> 10U) & 31;
  const double fraction = (bits & 1023U) / 1024.0;
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  if (exponent == 31) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  }
  if (exponent == 0) return sign * std::ldexp(fraction, -14);
  return sign * std::ldexp(1 + fraction, exponent - 15);
}

TEST(HalfFloat, EveryFloat16HasItsValueAndComesBack) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const Float16 half{static_cast<std::uint16_t>(bits)};
    const double expected = value_of_half(bits);
    const float value = to_float(half);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(to_float(to_float16(value)))) << bits;
    } else {
      ASSERT_EQ(value, expected) << bits;
      ASSERT_EQ(to_float16(value).bits, bits);
    }
  }
}

TEST(HalfFloat, RoundsToNearestEvenBetweenAllNeighbours) {
  for (unsigned bits = 0; bits < 0x7bffU; ++bits) {
    const auto low = static_cast<float>(value_of_half(bits));
    const auto high = static_cast<float>(value_of_half(bits + 1));
    const float middle = low + (high - low) / 2;  // exact in float
    const unsigned even = (bits & 1U) == 0 ? bits : bits + 1;
    ASSERT_EQ(to_float16(middle).bits, even) << bits;
    ASSERT_EQ(to_float16(std::nextafter(middle, 0.0F)).bits, bits);
    ASSERT_EQ(to_float16(std::nextafter(middle, 1e9F)).bits, bits + 1);
    ASSERT_EQ(to_float16(-middle).bits, even | 0x8000U) << bits;
  }
}

TEST(HalfFloat, OverflowsToInfinityFromTheMiddleOn) {
  EXPECT_EQ(to_float16(65519.996F).bits, 0x7bffU);
  EXPECT_EQ(to_float16(65520.0F).bits, 0x7c00U);
  EXPECT_EQ(to_float16(-1e30F).bits, 0xfc00U);
  EXPECT_EQ(to_float16(std::numeric_limits<float>::infinity()).bits, 0x7c00U);
  EXPECT_EQ(to_float16(1e-30F).bits, 0U);
}

TEST(HalfFloat, EveryBfloat16RoundsToNearestEven) {
  for (unsigned bits = 0; bits < 0x7f80U; ++bits) {
    ASSERT_EQ(to_bfloat16(to_float(Bfloat16{static_cast<std::uint16_t>(bits)})).bits, bits);
    const auto middle = std::bit_cast<float>((bits << 16U) | 0x8000U);
    ASSERT_EQ(to_bfloat16(middle).bits, (bits & 1U) == 0 ? bits : bits + 1);
    ASSERT_EQ(to_bfloat16(std::bit_cast<float>((bits << 16U) | 0x8001U)).bits, bits + 1);
    ASSERT_EQ(to_bfloat16(std::bit_cast<float>((bits << 16U) | 0x7fffU)).bits, bits);
  }
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::bit_cast<float>(0x7f800001U)))));
  EXPECT_TRUE(std::isinf(to_float(to_bfloat16(std::numeric_limits<float>::infinity()))));
}

template <typename T>
std::vector<T> combined(DataType type, ReduceOp op, std::vector<T> low,
                        const std::vector<T>& high) {
  const auto plan = plan_reduction(type, {op, 1}, 2);
  plan->combine(low.data(), low.data(), high.data(), low.size());
  return low;
}

TEST(Reduction, IntegersWrap) {
  using Int64 = std::numeric_limits<std::int64_t>;
  EXPECT_EQ(combined<std::int64_t>(DataType::kInt64, ReduceOp::kSum, {Int64::max()}, {1}),
            std::vector{Int64::min()});
  EXPECT_EQ(combined<std::uint8_t>(DataType::kUint8, ReduceOp::kSum, {200}, {100}),
            std::vector<std::uint8_t>{44});
}

TEST(Reduction, ANanOfEitherSideWins) {
  const float nan = std::nanf("");
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kSum}) {
    const auto result = combined<float>(DataType::kFloat32, op, {nan, 1, 2}, {1, nan, 3});
    EXPECT_TRUE(std::isnan(result[0])) << name_of(op);
    EXPECT_TRUE(std::isnan(result[1])) << name_of(op);
    EXPECT_FALSE(std::isnan(result[2])) << name_of(op);
  }
}

TEST(Reduction, AnAverageOfBytesDoesNotWrapAndRoundsTowardsZero) {
  const auto plan = plan_reduction(DataType::kUint8, {ReduceOp::kAverage, 1}, 3);
  const std::vector<std::uint8_t> input = {255, 200, 1, 0};
  std::vector<std::int32_t> sum(4), part(4);
  plan->load(sum.data(), input.data(), 4);
  plan->load(part.data(), input.data(), 4);
  plan->combine(sum.data(), sum.data(), part.data(), 4);
  plan->combine(sum.data(), sum.data(), part.data(), 4);
  sum[3] = 5;
  std::vector<std::uint8_t> output(4);
  plan->store(output.data(), sum.data(), 4);
  EXPECT_EQ(output, (std::vector<std::uint8_t>{255, 200, 1, 1}));

  const auto of_int = plan_reduction(DataType::kInt32, {ReduceOp::kAverage, 1}, 2);
  const std::int64_t negative = -3;
  std::int32_t result = 0;
  of_int->store(&result, &negative, 1);
  EXPECT_EQ(result, -1);
}

TEST(Reduction, HalfTypesAreAddedInFloatAndRoundedOnce) {
  // 2048 + 1 + 1 in float16 steps would stay 2048: each addition rounds to the even neighbour.
  const auto plan = plan_reduction(DataType::kFloat16, {ReduceOp::kSum, 1}, 3);
  const Float16 large = to_float16(2048), one = to_float16(1);
  float sum = 0, part = 0;
  plan->load(&sum, &large, 1);
  plan->load(&part, &one, 1);
  plan->combine(&sum, &sum, &part, 1);
  plan->combine(&sum, &sum, &part, 1);
  Float16 result{};
  plan->store(&result, &sum, 1);
  EXPECT_EQ(to_float(result), 2050);
}

TEST(Reduction, IntegersHaveNoPrescale) {
  const auto plan = plan_reduction(DataType::kInt32, {ReduceOp::kSum, 0.5}, 2);
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().message, HasSubstr("0.5 is not defined for int32"));
}

TEST(SingleCommunicator, ScalesAndCopies) {
  const auto single = single_communicator();
  std::vector<float> data(1500, 3);
  ASSERT_TRUE(single->all_reduce(data.data(), data.size(), DataType::kFloat32,
                                 {ReduceOp::kAverage, 0.5}, {}));
  EXPECT_EQ(data, std::vector<float>(1500, 1.5));
  std::vector<float> out(1500);
  ASSERT_TRUE(single->all_gather(data.data(), out.data(), 1500, DataType::kFloat32, {}));
  EXPECT_EQ(out, data);
  ASSERT_TRUE(single->reduce_scatter(data.data(), out.data(), 1500, DataType::kFloat32,
                                     {ReduceOp::kSum, 2}, {}));
  EXPECT_EQ(out, std::vector<float>(1500, 3));
  EXPECT_FALSE(single->broadcast(data.data(), 1, DataType::kFloat32, 1, {}));
  single->abort("enough");
  const auto after = single->barrier({});
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().message, "rank 0 aborted: enough");
}

}  // namespace
}  // namespace hvd
