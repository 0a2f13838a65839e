#include "runtime/timeline_environment.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/parse_number.h"
#include "proto/step_range.h"
#include "proto/timeline_name.h"

namespace hvd {
namespace {

Result<void> set_window(TimelineOptions& options, std::string_view text) {
  const auto steps = parse_step_range(text);
  if (!steps) {
    return make_error("HVDRUN_TIMELINE_STEPS is \"{}\"; write A-B, the first and the last step",
                      text);
  }
  std::tie(options.first_step, options.last_step) = *steps;
  return {};
}

Result<void> set_bound(TimelineOptions& options, std::string_view text) {
  const auto bytes = parse_number<std::uint64_t>(text);
  if (!bytes || *bytes < kLeastTimelineBytes) {
    return make_error("HVDRUN_TIMELINE_MAX_BYTES is \"{}\"; write a number from {} on", text,
                      kLeastTimelineBytes);
  }
  options.max_bytes = *bytes;
  return {};
}

// The ranks' files stand beside it, so what it is itself would never be noticed.
Result<void> check_file(const std::string& file) {
  namespace fs = std::filesystem;
  std::error_code none;
  const fs::file_status status = fs::status(file, none);
  const bool is_folder = fs::is_directory(status) || !fs::path(file).has_filename();
  if (!is_folder && (!fs::exists(status) || fs::is_regular_file(status))) return {};
  return make_error("HOROVOD_TIMELINE={}: it is {}; the ranks write to FILE.rank0.json and so on",
                    file, is_folder ? "a folder, name a file in it" : "no file, name another");
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
    if (auto checked = check_file(file); !checked) return tl::unexpected(checked.error());
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
