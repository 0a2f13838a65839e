// UTF-8, a character at a time. Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace hvd {

// The length of a UTF-8 character above ASCII at the start of a text that is not empty; 0 if it is
// invalid or one of the C1 controls. Overlong forms of shorter characters, surrogates and what is
// beyond U+10FFFF are invalid.
[[nodiscard]] inline std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::size_t length = 0;
  if (byte(0) >= 0xc2 && byte(0) <= 0xdf) length = 2;
  if (byte(0) >= 0xe0 && byte(0) <= 0xef) length = 3;
  if (byte(0) >= 0xf0 && byte(0) <= 0xf4) length = 4;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool is_control = byte(0) == 0xc2 && byte(1) < 0xa0;
  const bool is_overlong =
      (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xf0 && byte(1) < 0x90);
  const bool is_no_character =
      (byte(0) == 0xed && byte(1) >= 0xa0) || (byte(0) == 0xf4 && byte(1) >= 0x90);
  return is_control || is_overlong || is_no_character ? 0 : length;
}

}  // namespace hvd
