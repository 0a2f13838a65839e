// Time. Deadlines are steady; leases are boot time, which counts a suspended machine; the wall
// clock is for printing and for comparing nodes, never for a decision.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace hvd {

using Nanos = std::chrono::nanoseconds;
using SteadyTime = std::chrono::steady_clock::time_point;

// CLOCK_BOOTTIME since boot.
[[nodiscard]] Nanos boottime_now();

// Whole milliseconds, as they travel in messages.
[[nodiscard]] constexpr std::int64_t to_ms(Nanos duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

// CLOCK_MONOTONIC: a suspended machine does not count.
[[nodiscard]] Nanos monotonic_now();

// CLOCK_REALTIME since the epoch.
[[nodiscard]] Nanos realtime_now();

// "16:05:59.123" of a wall clock time, local zone.
[[nodiscard]] std::string format_time_of_day(Nanos realtime);

// "0.31 s", "2 min 5 s": for sentences.
[[nodiscard]] std::string format_duration(Nanos duration);

}  // namespace hvd
