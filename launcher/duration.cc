#include "launcher/duration.h"

#include <array>
#include <charconv>
#include <optional>

#include "launcher/shell_words.h"

namespace hvd {
namespace {

struct Unit {
  std::string_view suffix;
  double seconds;
};
constexpr std::array kUnits = {Unit{"", 1}, Unit{"s", 1}, Unit{"m", 60}, Unit{"h", 3600}};

std::optional<double> unit_seconds(std::string_view suffix) {
  for (const Unit& unit : kUnits) {
    if (unit.suffix == suffix) return unit.seconds;
  }
  return std::nullopt;
}

// Digits first, so that "inf", "nan", "-1" and "" are no numbers here; "1e3" ends at its 'e'.
std::optional<double> parse_seconds(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789.") == 0) return std::nullopt;
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  const auto unit = unit_seconds(text.substr(static_cast<std::size_t>(end - text.data())));
  if (!unit) return std::nullopt;
  return number * *unit;
}

std::string limit_text(std::chrono::nanoseconds duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  if (seconds >= 86400) return fmt::format("{:g} days", seconds / 86400);
  return fmt::format("{:g} s", seconds);
}

}  // namespace

Result<std::chrono::nanoseconds> parse_duration(std::string_view text, std::string_view name,
                                                DurationLimits limits) {
  const auto seconds = parse_seconds(text);
  if (!seconds) {
    return make_error(ExitCode::kUsage,
                      "{}: {} is no duration; write seconds or a number with s, m or h, as in 90, "
                      "1.5m or 2h",
                      name, show(text));
  }
  // Compared as doubles: a huge number must not wrap on its way into nanoseconds.
  const double lowest = std::chrono::duration<double>(limits.lowest).count();
  const double highest = std::chrono::duration<double>(limits.highest).count();
  if (*seconds < lowest || *seconds > highest) {
    return make_error(ExitCode::kUsage, "{}: {} is out of range; write a duration from {} to {}",
                      name, show(text), limit_text(limits.lowest), limit_text(limits.highest));
  }
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(*seconds));
}

}  // namespace hvd
