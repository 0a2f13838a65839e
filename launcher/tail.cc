#include "launcher/tail.h"

#include <algorithm>
#include <utility>

#include "base/blanks.h"
#include "base/lines.h"
#include "launcher/folded_lines.h"

namespace hvd {
namespace {

// The part of the bytes that holds their last lines: kMaxLines complete ones that say something,
// and what follows them.
std::string_view last_lines(std::string_view bytes) {
  if (bytes.size() > Tail::kMaxBytes) bytes.remove_prefix(bytes.size() - Tail::kMaxBytes);
  std::size_t end = bytes.size();
  std::size_t num_lines = 0;
  while (end > 0) {
    const std::size_t newline = bytes.rfind('\n', end - 1);
    if (newline == std::string_view::npos) return bytes;
    if (!strip_blanks(bytes.substr(newline, end - newline)).empty()) ++num_lines;
    if (num_lines > Tail::kMaxLines) return bytes.substr(newline + 1);
    end = newline;
  }
  return bytes;
}

std::string_view last_state(std::string_view line) {
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  const std::size_t overwritten = line.rfind('\r');
  return overwritten == std::string_view::npos ? line : line.substr(overwritten + 1);
}

}  // namespace

void Tail::add(std::uint32_t rank, std::string_view bytes) {
  if (rank >= buffers_.size()) return;
  Buffer& buffer = buffers_[rank];
  // A flood costs a look at its last lines, not a copy of it.
  const std::string_view kept = last_lines(bytes);
  if (kept.size() < bytes.size()) buffer.bytes.clear();
  buffer.bytes.append(kept);
  if (buffer.bytes.size() <= buffer.trim_above) return;
  buffer.bytes.erase(0, buffer.bytes.size() - last_lines(buffer.bytes).size());
  buffer.trim_above = std::min(kMaxBytes * 2, 4096 + 2 * buffer.bytes.size());
}

std::vector<std::string> Tail::lines(std::uint32_t rank) const {
  std::vector<std::string> lines;
  if (rank >= buffers_.size()) return lines;
  std::string_view rest = last_lines(buffers_[rank].bytes);
  while (!rest.empty()) lines.emplace_back(last_state(take_line(rest)));
  lines = folded_lines(std::move(lines));
  if (lines.size() > kMaxLines) lines.erase(lines.begin(), lines.end() - kMaxLines);
  return folded_lines(std::move(lines));  // the first of them may be blank
}

}  // namespace hvd
