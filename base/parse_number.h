// Text as a number, where all of it is one.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace hvd {

// nullopt: no number, more than a number, or one that Number does not hold. No blanks, no '+'.
template <typename Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace hvd
