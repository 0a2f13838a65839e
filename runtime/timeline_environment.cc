#include "runtime/timeline_environment.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "proto/timeline_name.h"

namespace hvd {
namespace {

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Result<void> set_window(TimelineOptions& options, std::string_view text) {
  const auto dash = text.find('-');
  const auto first = parse_number(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_number(text.substr(dash + 1));
  if (!first || !last || *first > *last) {
    return make_error("HVDRUN_TIMELINE_STEPS is \"{}\"; write A-B, the first and the last step",
                      text);
  }
  options.first_step = *first;
  options.last_step = *last;
  return {};
}

Result<void> set_bound(TimelineOptions& options, std::string_view text) {
  const auto bytes = parse_number(text);
  if (!bytes || *bytes < kLeastTimelineBytes) {
    return make_error("HVDRUN_TIMELINE_MAX_BYTES is \"{}\"; write a number from {} on", text,
                      kLeastTimelineBytes);
  }
  options.max_bytes = *bytes;
  return {};
}

}  // namespace

Result<std::optional<TimelineOptions>> timeline_from_environment(int rank, std::string host,
                                                                 const VariableLookup& variable) {
  const auto value = [&variable](const char* name) { return variable(name).value_or(""); };
  TimelineOptions options;
  options.rank = rank;
  options.host = std::move(host);
  if (const std::string folder = value("HVDRUN_TIMELINE"); !folder.empty()) {
    options.path = fmt::format("{}/{}", folder, timeline_name(static_cast<std::uint32_t>(rank)));
  } else if (const std::string file = value("HOROVOD_TIMELINE");
             !file.empty() && file != "DYNAMIC") {
    options.path = fmt::format("{}.rank{}.json", file, rank);
  } else {
    return std::optional<TimelineOptions>();
  }
  if (const std::string steps = value("HVDRUN_TIMELINE_STEPS"); !steps.empty()) {
    if (auto set = set_window(options, steps); !set) return tl::unexpected(set.error());
  }
  if (const std::string bytes = value("HVDRUN_TIMELINE_MAX_BYTES"); !bytes.empty()) {
    if (auto set = set_bound(options, bytes); !set) return tl::unexpected(set.error());
  }
  const std::string marks = value("HOROVOD_TIMELINE_MARK_CYCLES");
  options.marks_steps = !marks.empty() && marks != "0";
  return std::optional(std::move(options));
}

Result<std::optional<TimelineOptions>> timeline_from_environment(int rank, std::string host) {
  return timeline_from_environment(
      rank, std::move(host), [](const char* name) -> std::optional<std::string> {
        const char* const value = std::getenv(name);
        return value == nullptr ? std::nullopt : std::optional<std::string>(value);
      });
}

}  // namespace hvd
