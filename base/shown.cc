#include "base/shown.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/utf8.h"

namespace hvd {

std::string shown(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text[0]);
    const std::size_t length = c < 0x80 ? (c >= 0x20 && c != 0x7f ? 1 : 0) : utf8_length(text);
    if (length == 0) fmt::format_to(std::back_inserter(out), "\\x{:02x}", c);
    out.append(text.substr(0, length));
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace hvd
