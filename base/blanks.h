// White space in text. ASCII only.
#pragma once

#include <string_view>

namespace hvd {

inline constexpr std::string_view kBlanks = " \t\r\n\v\f";

// Without blanks at both ends.
[[nodiscard]] constexpr std::string_view strip_blanks(std::string_view text) {
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace hvd
