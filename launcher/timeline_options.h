// The options about timelines: what the user asks for, and what the workers are told of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "proto/worker_env.h"

namespace hvd {

struct Occurrence;

struct TimelineRequest {
  std::string path;  // of the merged file, absolute; empty: no timeline
  std::optional<std::pair<std::uint32_t, std::uint32_t>> steps;  // first and last
  std::uint64_t max_bytes = 256ULL << 20U;                       // of each rank's file
  std::optional<bool> marks_cycles;                              // nullopt: as the environment says

  [[nodiscard]] bool is_wanted() const { return !path.empty(); }
};

[[nodiscard]] Result<void> set_timeline_option(TimelineRequest& request, const Occurrence& it);

// After all options: notes what has no effect.
void note_unused_timeline_options(const TimelineRequest& request, std::vector<std::string>& notes);

// What every worker is told beside its folder, which its node knows. Pure.
[[nodiscard]] EnvList timeline_env(const TimelineRequest& request);

}  // namespace hvd
