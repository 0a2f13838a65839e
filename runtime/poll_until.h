// Asking again and again until something has settled, its time is up, or somebody gave up: how
// calls of a library that answers "in progress" get their time limit.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"

namespace hvd {

enum class PollEnd { kSettled, kDeadline, kGivenUp };

// is_settled, is_given_up: bool(); asked at once and then after pauses that grow from 10 us to 1
// ms.
template <typename IsSettled, typename IsGivenUp>
[[nodiscard]] PollEnd poll_until(SteadyTime deadline, IsSettled is_settled, IsGivenUp is_given_up) {
  std::chrono::microseconds pause{10};
  while (true) {
    if (is_settled()) return PollEnd::kSettled;
    if (is_given_up()) return PollEnd::kGivenUp;
    if (std::chrono::steady_clock::now() >= deadline) return PollEnd::kDeadline;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(1000));
  }
}

}  // namespace hvd
