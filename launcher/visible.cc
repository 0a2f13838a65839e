#include "launcher/visible.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/utf8.h"

namespace hvd {
namespace {

constexpr std::size_t kMaxColourBytes = 32;
constexpr std::string_view kResetColour = "\x1b[0m";

bool is_plain(unsigned char c) { return (c >= 0x20 && c < 0x7f) || c == '\t'; }

// The length of a colour sequence (ESC [ digits ; : m) at the start of the text, or 0.
std::size_t colour_length(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;:", 2);
  if (end == std::string_view::npos || text[end] != 'm' || end >= kMaxColourBytes) return 0;
  return end + 1;
}

}  // namespace

void append_visible(std::string& out, std::string_view line) {
  bool has_colour = false;
  while (!line.empty()) {
    const auto plain_end = std::find_if_not(line.begin(), line.end(), is_plain);
    std::size_t length = plain_end - line.begin();
    if (length == 0 && (length = colour_length(line)) > 0) has_colour = true;
    if (length == 0) length = utf8_length(line);
    if (length == 0) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(line[0]));
      line.remove_prefix(1);
      continue;
    }
    out.append(line.substr(0, length));
    line.remove_prefix(length);
  }
  if (has_colour) out.append(kResetColour);
}

void append_quoted(std::string& out, std::string_view line) {
  out += "  | ";
  append_visible(out, line);
  out += '\n';
}

}  // namespace hvd
