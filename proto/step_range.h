// A window of steps as text: "100-199", both inclusive, or "100". hvdrun's option and the variable
// by which workers get it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/parse_number.h"

namespace hvd {

// First and last; nullopt: no numbers, or the last before the first.
[[nodiscard]] inline std::optional<std::pair<std::uint64_t, std::uint64_t>> parse_step_range(
    std::string_view text) {
  const auto dash = text.find('-');
  const auto first = parse_number<std::uint64_t>(text.substr(0, dash));
  const auto last =
      dash == std::string_view::npos ? first : parse_number<std::uint64_t>(text.substr(dash + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  return std::pair(*first, *last);
}

}  // namespace hvd
