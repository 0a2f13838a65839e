#include "launcher/transport/tls_words.h"

#include <array>
#include <utility>

namespace hvd {
namespace {

using Kind = TlsAnswer::Kind;
constexpr std::array<std::pair<std::string_view, Kind>, 4> kWords = {{{"ready", Kind::kReady},
                                                                      {"error", Kind::kError},
                                                                      {"wait", Kind::kWaiting},
                                                                      {"claimed", Kind::kClaimed}}};

}  // namespace

TlsAnswer parse_tls_answer(std::string_view line, std::string_view marker) {
  const std::string_view rest =
      line.starts_with(marker) ? line.substr(marker.size()) : std::string_view();
  if (rest.starts_with(' ')) {
    const std::string_view word = rest.substr(1, rest.find(' ', 1) - 1);
    const std::string_view text = rest.substr(1 + word.size());
    for (const auto& [name, kind] : kWords) {
      if (word == name) return {kind, std::string(text.substr(text.empty() ? 0 : 1))};
    }
  }
  return {Kind::kUnknown, std::string(line)};
}

}  // namespace hvd
