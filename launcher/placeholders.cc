#include "launcher/placeholders.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "launcher/shell_words.h"

namespace hvd {
namespace {

// The next placeholder of the text from `at` on, which moves behind it; empty: there is none.
std::string_view next_placeholder(std::string_view text, std::size_t& at) {
  while ((at = text.find('{', at)) != std::string_view::npos) {
    const std::size_t start = at++;
    const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_-", at);
    const bool is_closed = end != std::string_view::npos && end > at && text[end] == '}';
    const bool is_shells = start > 0 && text[start - 1] == '$';
    if (is_closed && !is_shells) return text.substr(start, end + 1 - start);
  }
  return {};
}

}  // namespace

Result<void> check_placeholders(const std::vector<std::string>& words,
                                const std::vector<std::string_view>& known,
                                std::string_view option) {
  for (const std::string& word : words) {
    std::size_t at = 0;
    for (std::string_view found; !(found = next_placeholder(word, at)).empty();) {
      if (std::find(known.begin(), known.end(), found) != known.end()) continue;
      return make_error(ExitCode::kUsage,
                        "{} {}: there is no {}; replaced are {} (braces that the program is to get "
                        "are written with a blank, as in {{ name }})",
                        option, show(word), found, fmt::join(known, ", "));
    }
  }
  return {};
}

}  // namespace hvd
