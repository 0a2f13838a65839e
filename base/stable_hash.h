// A number for a text, the same on every machine and in every build. No secret, no proof.
#pragma once

#include <cstdint>
#include <string_view>

namespace hvd {

// FNV-1a, 64 bits.
[[nodiscard]] constexpr std::uint64_t stable_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

}  // namespace hvd
