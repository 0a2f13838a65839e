// Text line by line, without copying it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace hvd {

// Takes the first line off a text that is not empty and returns it without its end. The last line
// need not have one.
[[nodiscard]] inline std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

}  // namespace hvd
