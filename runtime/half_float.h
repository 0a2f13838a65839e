// IEEE binary16 and bfloat16 as bits, to and from float, rounding to nearest even. Without
// branches, so that loops over them vectorise; every NaN stays a NaN, and subnormal numbers are
// exact.
#pragma once

#include <bit>
#include <cstdint>

namespace hvd {

struct Float16 {
  std::uint16_t bits;
};
struct Bfloat16 {
  std::uint16_t bits;
};

inline float to_float(Bfloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16U);
}

inline Bfloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
  const std::uint32_t quiet_nan = (bits >> 16U) | 0x40U;
  const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
  return {static_cast<std::uint16_t>(is_nan ? quiet_nan : rounded)};
}

inline float to_float(Float16 value) {
  const std::uint32_t sign = (value.bits & 0x8000U) << 16U;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(value.bits & 0x7fffU) << 13U;
  // Exponents move from bias 15 to 127; all ones moves on to all ones.
  const std::uint32_t normal = magnitude + (112U << 23U);
  const std::uint32_t not_finite = magnitude + (224U << 23U);
  // A subnormal's mantissa, put under the exponent of 2^-14, is too large by exactly 2^-14.
  const float smallest_normal = std::bit_cast<float>(113U << 23U);
  const auto subnormal = std::bit_cast<std::uint32_t>(
      std::bit_cast<float>(magnitude + (113U << 23U)) - smallest_normal);
  std::uint32_t bits = magnitude < (1U << 23U) ? subnormal : normal;
  bits = magnitude >= (31U << 23U) ? not_finite : bits;
  return std::bit_cast<float>(bits | sign);
}

inline Float16 to_float16(float value) {
  const auto all = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (all >> 16U) & 0x8000U;
  const std::uint32_t bits = all & 0x7fffffffU;
  const std::uint32_t normal = (bits - (112U << 23U) + 0xfffU + ((bits >> 13U) & 1U)) >> 13U;
  // Adding 0.5 leaves 2^-24, the smallest subnormal, as the unit in the last place: the addition
  // itself rounds.
  const std::uint32_t half = 126U << 23U;
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(bits) + std::bit_cast<float>(half)) - half;
  const std::uint32_t not_finite = bits > 0x7f800000U ? 0x7e00U : 0x7c00U;
  std::uint32_t result = bits < (113U << 23U) ? subnormal : normal;
  result = bits >= (143U << 23U) ? not_finite : result;  // 2^16 and more
  return {static_cast<std::uint16_t>(result | sign)};
}

}  // namespace hvd
