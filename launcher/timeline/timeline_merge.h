// One Chrome trace of all ranks from the files that the nodes have sent: written beside its place
// and then renamed, so that the name never stands for half a trace.
//
// The files are mapped, not read into memory, and one rank at a time is put in order: memory is 40
// bytes for each event of one rank. Blocks on the disk: for a helper thread, which nothing else may
// disturb in what is passed; `is_cancelled` may be set from outside.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "launcher/timeline/timeline_spool.h"

namespace hvd {

struct MergeSource {
  std::string host;
  const TimelineSpool* spool = nullptr;  // not owned
  Nanos to_launcher{};                   // the launcher's CLOCK_BOOTTIME minus the node's
};

struct MergeTarget {
  std::string path;
  mode_t mode = 0600;
};

struct MergedTimeline {
  std::uint32_t num_ranks = 0;  // 0: nothing was written
  std::uint64_t num_bytes = 0;
  std::vector<std::string> warnings;
};

// Times in the trace: microseconds since `job_start`, which is on the launcher's CLOCK_BOOTTIME.
[[nodiscard]] Result<MergedTimeline> merge_timelines(const std::vector<MergeSource>& sources,
                                                     Nanos job_start, const MergeTarget& target,
                                                     const std::atomic<bool>& is_cancelled);

}  // namespace hvd
