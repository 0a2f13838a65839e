// Why a service that got SIGTERM is to end: whether the service manager (systemd) is about to start
// it again. It does not say so itself; the job that it has queued for the service's unit does.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/loop.h"
#include "proto/worker_env.h"

namespace hvd {

struct OwnUnit {
  std::string name;         // "hvd-agent.service"
  bool is_of_user = false;  // of a user's manager, not the system's
};

// The service whose process this is, from /proc/self/cgroup, of cgroup v2 or v1: the innermost unit
// of the path, also from a folder within it. Nothing: no service (a session, a scope, a container
// that sees no units). Pure.
[[nodiscard]] std::optional<OwnUnit> parse_own_unit(std::string_view cgroups);

enum class StopReason {
  kRestart,  // it will be started again
  kStop,     // it will not: a stop, a shutdown
  kUnknown,  // to be taken for a stop: killed by hand, no service manager, no answer
};

// From what `systemctl list-jobs` prints ("JOB UNIT TYPE STATE", with or without legend, or that
// there are none). Pure.
[[nodiscard]] StopReason parse_stop_reason(std::string_view jobs, std::string_view unit);

struct StopAnswer {
  StopReason reason = StopReason::kUnknown;
  std::string why;  // "systemctl did not end within 2 s", where it is unknown
};

inline constexpr Nanos kStopQuestionLimit = std::chrono::seconds(2);

// Asks systemctl, with this environment; once SIGTERM has come, because before it there is no job.
[[nodiscard]] Task<StopAnswer> ask_stop_reason(Loop& loop, EnvList env);

}  // namespace hvd
