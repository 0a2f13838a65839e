#include "launcher/show_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "launcher/shell_words.h"

namespace hvd {
namespace {

using Line = std::array<std::string, 3>;  // name, value, origin

constexpr std::size_t kWidestColumn = 36;

// The value without what may be secret.
std::string value_text(const Occurrence& it) {
  if (it.spec->id == OptionId::kEnv) return it.value.substr(0, it.value.find('='));
  if (it.spec->takes_argument()) return quote_word(it.value);
  return it.is_opposite ? "off" : "on";
}

std::string origin_of(const Occurrence& it) {
  return it.source.empty() ? "command line" : it.source;
}

// Of an option that counts once the last value counts.
std::vector<Line> lines_of(const OptionSpec& option, const std::vector<Occurrence>& settings) {
  std::vector<Line> lines;
  for (const Occurrence& it : settings) {
    if (it.spec != &option) continue;
    if (option.repeat == Repeat::kOnce) lines.clear();
    lines.push_back({std::string(option.names.back()), value_text(it), origin_of(it)});
  }
  if (lines.empty()) {
    lines.push_back({std::string(option.names.back()), default_text(option), "default"});
  }
  return lines;
}

std::size_t width_of(const std::vector<Line>& lines, std::size_t column) {
  std::size_t width = 0;
  for (const Line& line : lines) width = std::max(width, line[column].size());
  return std::min(width, kWidestColumn);
}

}  // namespace

std::string default_text(const OptionSpec& option) {
  constexpr std::string_view kMark = "default: ";
  const auto at = option.help.rfind(kMark);
  return at == std::string_view::npos ? "off" : std::string(option.help.substr(at + kMark.size()));
}

std::string show_config_text(const Options& options) {
  std::vector<Line> lines;
  for (const OptionSpec& option : options_table()) {
    if (option.is_hidden || option.is_per_run) continue;
    for (Line& line : lines_of(option, options.settings)) lines.push_back(std::move(line));
  }
  const std::size_t name_width = width_of(lines, 0);
  const std::size_t value_width = width_of(lines, 1);
  std::string result;
  for (const auto& [name, value, origin] : lines) {
    result += fmt::format("{:<{}}  {:<{}}  {}\n", name, name_width, value, value_width, origin);
  }
  for (const std::string& note : options.notes) result += fmt::format("note: {}\n", note);
  return result;
}

}  // namespace hvd
