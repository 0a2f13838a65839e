#include "launcher/host_range.h"

#include <cstdint>

#include "base/blanks.h"
#include "base/parse_number.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

constexpr std::size_t kMostDigits = 9;

Error range_error(std::string_view name, std::string_view why) {
  return {fmt::format("{} {}; write a range as in node[1-4,7] or node[01-12]", show(name), why),
          ExitCode::kUsage};
}

struct NumberRange {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  std::size_t num_digits = 1;
};

Result<NumberRange> parse_number_range(std::string_view name, std::string_view part) {
  const auto dash = part.find('-');
  const auto low_text = part.substr(0, dash);
  const auto high_text = dash == std::string_view::npos ? low_text : part.substr(dash + 1);
  const auto low = parse_number<std::uint32_t>(low_text);
  const auto high = parse_number<std::uint32_t>(high_text);
  if (!low || !high || low_text.size() > kMostDigits || high_text.size() > kMostDigits) {
    return tl::unexpected(
        range_error(name, fmt::format("has {} in its brackets, which is no range", show(part))));
  }
  if (*high < *low) {
    return tl::unexpected(
        range_error(name, fmt::format("has the range {}, which runs backwards", show(part))));
  }
  if (high_text.front() == '0' && high_text.size() != low_text.size()) {
    return tl::unexpected(range_error(
        name, fmt::format("has the range {}, whose ends have different digits", show(part))));
  }
  return NumberRange{*low, *high, low_text.front() == '0' ? low_text.size() : 1};
}

// What stands in one pair of brackets: "01-04,7".
Result<std::vector<std::string>> expand_numbers(std::string_view name, std::string_view inside) {
  std::vector<std::string> numbers;
  for (std::size_t at = 0; at <= inside.size();) {
    const auto comma = std::min(inside.find(',', at), inside.size());
    const auto range = parse_number_range(name, strip_blanks(inside.substr(at, comma - at)));
    if (!range) return tl::unexpected(range.error());
    if (range->high - range->low >= kMostHosts - numbers.size()) {
      return tl::unexpected(range_error(name, fmt::format("is more than {} hosts", kMostHosts)));
    }
    for (std::uint32_t number = range->low; number <= range->high; ++number) {
      numbers.push_back(fmt::format("{:0{}}", number, range->num_digits));
    }
    at = comma + 1;
  }
  return numbers;
}

// Each name so far with each of the numbers behind it.
Result<std::vector<std::string>> append_each(const std::vector<std::string>& names,
                                             const std::vector<std::string>& numbers,
                                             std::string_view name) {
  if (names.size() * numbers.size() > kMostHosts) {
    return tl::unexpected(range_error(name, fmt::format("is more than {} hosts", kMostHosts)));
  }
  std::vector<std::string> longer;
  longer.reserve(names.size() * numbers.size());
  for (const std::string& begun : names) {
    for (const std::string& number : numbers) longer.push_back(begun + number);
  }
  return longer;
}

}  // namespace

std::vector<std::string_view> split_host_items(std::string_view text) {
  std::vector<std::string_view> items;
  std::size_t begin = 0;
  bool is_inside = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '[') is_inside = true;
    if (text[at] == ']') is_inside = false;
    if (text[at] != ',' || is_inside) continue;
    items.push_back(strip_blanks(text.substr(begin, at - begin)));
    begin = at + 1;
  }
  items.push_back(strip_blanks(text.substr(begin)));
  return items;
}

Result<std::vector<std::string>> expand_host_range(std::string_view name) {
  std::vector<std::string> names = {""};
  for (std::size_t at = 0; at < name.size();) {
    const auto open = std::min(name.find('[', at), name.size());
    for (std::string& begun : names) begun += name.substr(at, open - at);
    if (open == name.size()) break;
    const auto close = name.find(']', open);
    if (close == std::string_view::npos) {
      return tl::unexpected(range_error(name, "has a bracket that is not closed"));
    }
    const auto numbers = expand_numbers(name, name.substr(open + 1, close - open - 1));
    if (!numbers) return tl::unexpected(numbers.error());
    auto longer = append_each(names, *numbers, name);
    if (!longer) return longer;
    names = std::move(*longer);
    at = close + 1;
  }
  return names;
}

}  // namespace hvd
