// What the requests that wait at the launcher have in common. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace hvd {

// More ranks than these are counted, not named.
inline constexpr std::size_t kMaxMissingNamed = 16;

// A little before the caller's own deadline: its call ends there without a word, and only our
// answer names what is missing. Never later than in a week.
[[nodiscard]] inline SteadyTime answer_deadline(std::int64_t timeout_ms, SteadyTime now) {
  using std::chrono::milliseconds;
  constexpr milliseconds kLongestWait = std::chrono::hours(24 * 7);
  constexpr milliseconds kAnswerAhead{500};
  const auto wanted =
      std::clamp<milliseconds>(milliseconds(timeout_ms), milliseconds(0), kLongestWait);
  return now + wanted - std::min(wanted / 10, kAnswerAhead);
}

}  // namespace hvd
