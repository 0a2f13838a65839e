// What stands where in the trace file of one rank (runtime/timeline.h: an array, one event a line),
// and how an event is moved to another time axis. Pure.
//
// Only lines that are whole JSON objects of this rank count, so that whatever a worker has left in
// its file, the merged one is valid. 40 bytes a line are kept, not the events.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace hvd {

struct TraceLine {
  std::int64_t thread = 0;
  Nanos at{};        // since the start of the file
  Nanos duration{};  // 0 for an instant
  std::uint64_t offset = 0;
  std::uint32_t num_bytes = 0;
};

struct TraceIndex {
  bool has_clock = false;  // without it the file is no timeline
  Nanos start{};           // of the file, CLOCK_BOOTTIME of its node
  std::vector<TraceLine> metadata;
  std::vector<TraceLine> events;     // by track, then time; a span before those inside it
  std::uint64_t num_unreadable = 0;  // lines that are left out: torn, or not a rank's own
};

[[nodiscard]] TraceIndex index_trace(std::string_view text, std::uint32_t rank);

// What is added to the times of a file to make them times since the job's start on the launcher's
// clock. `to_launcher`: the launcher's CLOCK_BOOTTIME minus the node's.
[[nodiscard]] Nanos trace_shift(Nanos file_start, Nanos to_launcher, Nanos job_start);

// The event's line with its time moved.
[[nodiscard]] std::string moved_line(std::string_view text, const TraceLine& line, Nanos shift);

}  // namespace hvd
