#include "launcher/env_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/plural.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

constexpr std::array<std::string_view, 10> kSecretWords = {
    "TOKEN",      "SECRET", "PASSW",  "PASSPHRASE", "KEY",
    "CREDENTIAL", "AUTH",   "COOKIE", "PRIVATE",    "SIGNATURE"};
constexpr std::size_t kMostShown = 80;

// scheme://user:password@host
bool has_password_in_url(std::string_view value) {
  for (auto at = value.find("://"); at != std::string_view::npos; at = value.find("://", at + 3)) {
    const auto authority = value.substr(at + 3, value.find_first_of("/?# ", at + 3) - at - 3);
    const auto end = authority.rfind('@');
    if (end != std::string_view::npos &&
        authority.substr(0, end).find(':') != std::string_view::npos)
      return true;
  }
  return false;
}

std::string names_text(const std::vector<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, " "));
}

}  // namespace

bool is_secret_name(std::string_view name) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return std::any_of(kSecretWords.begin(), kSecretWords.end(), [&upper](std::string_view word) {
    return upper.find(word) != std::string::npos;
  });
}

std::string shown_variable(std::string_view name, std::string_view value) {
  if (is_secret_name(name) || has_password_in_url(value)) return fmt::format("{}=(hidden)", name);
  if (value.size() <= kMostShown) return fmt::format("{}={}", name, quote_word(value));
  return fmt::format("{}={}... ({} bytes)", name, quote_word(value.substr(0, kMostShown)),
                     value.size());
}

std::vector<std::string> environment_lines(const EnvList& launcher_environment,
                                           const std::vector<EnvRule>& rules,
                                           const EnvList& user_env) {
  std::vector<std::string> travelling;
  std::vector<std::string> kept;
  for (const auto& [name, value] : launcher_environment) {
    (does_travel(name, rules) ? travelling : kept).push_back(quote_word(name));
  }
  std::vector<std::string> lines = {
      fmt::format("environment: from hvdrun to the nodes ({}): {}",
                  counted(travelling.size(), "variable"), names_text(travelling)),
      fmt::format("environment: kept at home ({}): {}", counted(kept.size(), "variable"),
                  names_text(kept))};
  if (user_env.empty()) return lines;
  std::vector<std::string> given;
  for (const auto& [name, value] : user_env) given.push_back(shown_variable(name, value));
  lines.push_back(fmt::format("environment: given by --env-file and -x: {}", names_text(given)));
  return lines;
}

}  // namespace hvd
