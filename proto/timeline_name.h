// How the timeline of a rank is called in its node's folder: what the runtime writes, the agent
// looks for and the launcher merges. Pure, header only.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hvd {

// "rank12.json"
[[nodiscard]] inline std::string timeline_name(std::uint32_t rank) {
  return fmt::format("rank{}.json", rank);
}

// nullopt: another file's name.
[[nodiscard]] inline std::optional<std::uint32_t> rank_of_timeline(std::string_view name) {
  const auto first_digit = name.find_first_of("0123456789");
  if (first_digit == std::string_view::npos) return std::nullopt;
  const std::string_view tail = name.substr(first_digit);
  std::uint32_t rank = 0;
  const auto [end, error] = std::from_chars(tail.data(), tail.data() + tail.size(), rank);
  if (error != std::errc() || name != timeline_name(rank)) return std::nullopt;
  return rank;
}

}  // namespace hvd
