// CRC-32C (Castagnoli, RFC 3720) and the masked form in which TFRecord stores it. Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace hvd {

[[nodiscard]] std::uint32_t crc32c(std::string_view bytes);

// A checksum that is stored among data that is itself checksummed is stored masked.
[[nodiscard]] constexpr std::uint32_t mask_crc32c(std::uint32_t crc) {
  return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U;
}

[[nodiscard]] constexpr std::uint32_t unmask_crc32c(std::uint32_t masked) {
  const std::uint32_t rotated = masked - 0xa282ead8U;
  return (rotated >> 17U) | (rotated << 15U);
}

}  // namespace hvd
