// --report: what became of the job, its ranks and nodes, as one JSON object (docs/report.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "hvdrun/v1/types.pb.h"
#include "launcher/policy.h"

namespace hvd {

enum class RankState {
  kNotStarted,
  kRunning,  // never heard of again: its node was lost
  kSucceeded,
  kStopped,
  kFailed,
  kFailedToStart,
};

[[nodiscard]] const char* state_name(RankState state);

// Times are on the launcher's CLOCK_BOOTTIME axis.
struct RankFacts {
  std::string host;
  std::int32_t pid = 0;
  RankState state = RankState::kNotStarted;
  std::optional<int> code;
  std::optional<int> signal;
  std::optional<Nanos> started;
  std::optional<Nanos> ended;
};

struct NodeFacts {
  std::string host;
  std::string agent_version;   // empty: it was never reached
  std::string layer;           // of containment: "descendants", "cgroup"
  bool is_spawned = false;     // it was told to start ranks
  bool is_verified = false;    // it has proved that nothing is left
  std::string why_unverified;  // where nothing is known
  std::vector<hvdrun::v1::Survivor> survivors;
  std::vector<std::string> remains;     // what else is left there: sentences
  std::vector<std::string> kernel_log;  // out-of-memory kills and Xids since the job's start
};

struct RunFacts {
  std::string job_id;
  std::vector<std::string> command;
  Nanos begun{0};  // boot time, as all times here
  Nanos ended{0};
  JobClock clock;
  int code = 0;
  std::optional<Cause> cause;
  std::string error;  // why there was no job at all; the cause is absent then
  std::vector<std::string> last_lines;
  std::uint32_t num_stopped = 0;
  std::uint32_t num_failed_after = 0;
  std::vector<RankFacts> ranks;
  std::vector<NodeFacts> nodes;
  std::map<std::string, std::string> sections;  // further members by name: JSON text
};

[[nodiscard]] std::string report_json(const RunFacts& facts);

// Written beside `path` and renamed to it, for whom our umask allows; the error says that what
// stood there is as it was. "-": to stdout.
[[nodiscard]] Result<void> write_report(const std::string& path, std::string_view text);

}  // namespace hvd
