#include "training/petrv2/synth/token.h"

#include <fmt/format.h>

#include <algorithm>

namespace hvd::petrv2 {
namespace {

constexpr std::size_t kDigitsPerHalf = 16;

std::optional<std::uint64_t> parse_half(std::string_view digits) {
  std::uint64_t value = 0;
  for (const char c : digits) {
    const bool is_decimal = c >= '0' && c <= '9';
    if (!is_decimal && (c < 'a' || c > 'f')) return std::nullopt;
    value = value << 4U | static_cast<std::uint64_t>(is_decimal ? c - '0' : c - 'a' + 10);
  }
  return value;
}

}  // namespace

std::string Token::text() const { return fmt::format("{:016x}{:016x}", high, low); }

std::optional<Token> parse_token(std::string_view text) {
  if (text.size() != 2 * kDigitsPerHalf) return std::nullopt;
  const auto high = parse_half(text.substr(0, kDigitsPerHalf));
  const auto low = parse_half(text.substr(kDigitsPerHalf));
  if (!high || !low) return std::nullopt;
  return Token{*high, *low};
}

std::optional<Token> TokenIndex::sort() {
  const auto by_token = [](const Key& a, const Key& b) { return a.token < b.token; };
  std::sort(keys_.begin(), keys_.end(), by_token);
  const auto twin = std::adjacent_find(
      keys_.begin(), keys_.end(), [](const Key& a, const Key& b) { return a.token == b.token; });
  if (twin == keys_.end()) return std::nullopt;
  return twin->token;
}

std::optional<std::uint32_t> TokenIndex::find(Token token) const {
  const auto found =
      std::lower_bound(keys_.begin(), keys_.end(), token,
                       [](const Key& key, const Token& sought) { return key.token < sought; });
  if (found == keys_.end() || found->token != token) return std::nullopt;
  return found->entry;
}

}  // namespace hvd::petrv2
