#include "runtime/horovod_variables.h"

#include <algorithm>
#include <cctype>

namespace hvd {
namespace {

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
