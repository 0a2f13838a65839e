// The 128-bit key of a nuScenes table entry, and the way from a key to the entry's number. Full
// trainval has millions of them: sixteen bytes instead of a string of 32 digits. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hvd::petrv2 {

struct Token {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  auto operator<=>(const Token&) const = default;
  // 32 hexadecimal digits, as in the tables.
  [[nodiscard]] std::string text() const;
};

// nullopt: not 32 hexadecimal digits of lower case.
[[nodiscard]] std::optional<Token> parse_token(std::string_view text);

// Finds entries by token. Lifecycle: add() all, sort() once, then find(). Thread: find() any.
class TokenIndex {
 public:
  void add(Token token, std::uint32_t entry) { keys_.push_back({token, entry}); }
  // The token that two entries share, if any.
  [[nodiscard]] std::optional<Token> sort();
  [[nodiscard]] std::optional<std::uint32_t> find(Token token) const;

 private:
  struct Key {
    Token token;
    std::uint32_t entry;
  };
  std::vector<Key> keys_;
};

}  // namespace hvd::petrv2
