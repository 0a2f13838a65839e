// Lines that say something, as reports quote them. Pure.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/blanks.h"

namespace hvd {

// Without blank lines at the start and at the end, and with one where several follow each other: a
// text may not be hidden by nothing.
[[nodiscard]] inline std::vector<std::string> folded_lines(std::vector<std::string> lines) {
  const auto is_blank = [](std::string_view line) { return strip_blanks(line).empty(); };
  const auto end = std::unique(lines.begin(), lines.end(), [&](const auto& a, const auto& b) {
    return is_blank(a) && is_blank(b);
  });
  lines.erase(end, lines.end());
  if (!lines.empty() && is_blank(lines.front())) lines.erase(lines.begin());
  if (!lines.empty() && is_blank(lines.back())) lines.pop_back();
  return lines;
}

}  // namespace hvd
