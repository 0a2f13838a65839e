#include "base/shown.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/utf8.h"

namespace hvd {

namespace {

// U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069.
bool is_control(std::string_view character) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 2) return at(0) == 0xd8 && at(1) == 0x9c;
  if (character.size() != 3 || at(0) != 0xe2) return false;
  if (at(1) == 0x80) return at(2) == 0x8e || at(2) == 0x8f || (at(2) >= 0xa8 && at(2) <= 0xae);
  return at(1) == 0x81 && at(2) >= 0xa6 && at(2) <= 0xa9;
}

}  // namespace

std::string shown(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text[0]);
    std::size_t length = c < 0x80 ? (c >= 0x20 && c != 0x7f ? 1 : 0) : utf8_length(text);
    if (length > 1 && is_control(text.substr(0, length))) length = 0;
    if (length == 0) fmt::format_to(std::back_inserter(out), "\\x{:02x}", c);
    out.append(text.substr(0, length));
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace hvd
