// Durations as users write them: "10", "10s", "1.5m", "2h"; seconds without a unit. Pure.
#pragma once

#include <chrono>
#include <string_view>

#include "base/status.h"

namespace hvd {

// Inclusive. An option that must not be zero has a lowest value of one millisecond.
struct DurationLimits {
  std::chrono::nanoseconds lowest = std::chrono::milliseconds(1);
  std::chrono::nanoseconds highest = std::chrono::hours(24 * 365);
};

// `name` is the option or variable that the value belongs to, for the message.
[[nodiscard]] Result<std::chrono::nanoseconds> parse_duration(std::string_view text,
                                                              std::string_view name,
                                                              DurationLimits limits = {});

}  // namespace hvd
