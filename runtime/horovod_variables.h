// What a worker reads of the user's wishes for its log, its dumps and its end, Horovod's names
// included. Pure. (The timeline's: timeline_environment.h.)
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/log.h"
#include "base/status.h"
#include "hvdrun/place.h"
#include "proto/worker_env.h"

namespace hvd {

// HOROVOD_LOG_LEVEL: trace, debug, info, warning, error, fatal, in any case. nullopt: not set.
[[nodiscard]] Result<std::optional<LogLevel>> horovod_log_level(const EnvList& environment);

// HVDRUN_ABORT_TIMEOUT_MS; 10 s if it is not set.
[[nodiscard]] Result<std::chrono::milliseconds> abort_timeout(const EnvList& environment);

// One sentence about Horovod's variables that are set and steer nothing here; nullopt: none is.
[[nodiscard]] std::optional<std::string> variables_without_effect(const EnvList& environment);

// Where a dump of the flight recorder goes: HVDRUN_DUMP_DIR, else the timeline's folder. Empty:
// nowhere.
[[nodiscard]] std::string dump_path(const EnvList& environment, const Place& place);

}  // namespace hvd
