#include "runtime/horovod_variables.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/parse_number.h"

namespace hvd {
namespace {

constexpr std::chrono::milliseconds kAbortTimeout{10'000};
constexpr std::chrono::milliseconds kLongestAbort = std::chrono::hours(24);

std::optional<std::string> filled(const EnvList& environment, const char* name) {
  auto value = find_env(environment, name);
  if (value && value->empty()) value.reset();
  return value;
}

std::optional<LogLevel> parse_level(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name == "trace" || name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error" || name == "fatal") return LogLevel::kError;
  return std::nullopt;
}

}  // namespace

Result<std::optional<LogLevel>> horovod_log_level(const EnvList& environment) {
  const auto name = filled(environment, "HOROVOD_LOG_LEVEL");
  if (!name) return std::optional<LogLevel>();
  const auto level = parse_level(*name);
  if (level) return level;
  return make_error(ExitCode::kUsage,
                    "HOROVOD_LOG_LEVEL={} is no level: give trace, debug, info, warning, error or "
                    "fatal",
                    *name);
}

Result<std::chrono::milliseconds> abort_timeout(const EnvList& environment) {
  const auto text = filled(environment, "HVDRUN_ABORT_TIMEOUT_MS");
  if (!text) return kAbortTimeout;
  const auto limit = parse_number<std::int64_t>(*text);
  if (limit && *limit > 0 && *limit <= kLongestAbort.count()) {
    return std::chrono::milliseconds(*limit);
  }
  return make_error(ExitCode::kUsage,
                    "HVDRUN_ABORT_TIMEOUT_MS={} is no number of milliseconds from 1 to {}: give "
                    "one, or unset it for {}",
                    *text, kLongestAbort.count(), kAbortTimeout.count());
}

std::optional<std::string> variables_without_effect(const EnvList& environment) {
  std::vector<std::string> names;
  for (const char* name : {"HOROVOD_CYCLE_TIME", "HOROVOD_CACHE_CAPACITY", "HOROVOD_AUTOTUNE"}) {
    const auto value = filled(environment, name);
    const bool is_off = name == std::string_view("HOROVOD_AUTOTUNE") && value == "0";
    if (value && !is_off) names.push_back(fmt::format("{}={}", name, *value));
  }
  if (names.empty()) return std::nullopt;
  return fmt::format(
      "{} {} no effect here: a bucket of gradients goes out as soon as it is full, without cycles "
      "and without a negotiation that could be cached or tuned (HOROVOD_FUSION_THRESHOLD is read)",
      fmt::join(names, ", "), names.size() == 1 ? "has" : "have");
}

std::string dump_path(const EnvList& environment, const Place& place) {
  auto folder = filled(environment, "HVDRUN_DUMP_DIR");
  if (!folder) folder = filled(environment, "HVDRUN_TIMELINE");
  if (!folder) {
    folder = filled(environment, "HOROVOD_TIMELINE");
    if (!folder || *folder == "DYNAMIC") return {};
    const auto slash = folder->rfind('/');
    folder = slash == std::string::npos ? "." : folder->substr(0, slash);
  }
  return fmt::format("{}/rank{}.flight.json", *folder, place.rank);
}

}  // namespace hvd
