// How often the user wants the job to end, judged by the signals that arrive. One Ctrl-C may come
// twice: the terminal signals every process of its foreground group, and a program that wraps
// hvdrun (timeout, a launcher in Python) passes on what it got itself; some signal their child and
// then their whole group. A second Ctrl-C comes from the same origin as the first, so it counts
// however soon it comes.
//
// Pure; one for each job.
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/clock.h"

namespace hvd {

struct ReceivedSignal {
  int number = 0;
  bool is_of_kernel = false;  // of the terminal, not of a process
  pid_t sender = 0;           // 0: the kernel, or a process outside of our pid namespace
  Nanos time{0};              // CLOCK_MONOTONIC, when it came
};

class StopWishes {
 public:
  // How late a wrapper passes on what the terminal has told us already, at most.
  static constexpr Nanos kEcho = std::chrono::milliseconds(300);
  // Closer than this are the two signals of one program, whatever their origin.
  static constexpr Nanos kAtOnce = std::chrono::milliseconds(20);

  // Whether it is a wish of its own. Signals come in the order of their times.
  [[nodiscard]] bool take(const ReceivedSignal& signal);
  [[nodiscard]] int count() const { return count_; }

 private:
  using Wish = std::vector<ReceivedSignal>;  // what arrived of it, the first one first

  [[nodiscard]] static bool is_echo(const Wish& wish, const ReceivedSignal& signal);

  std::vector<Wish> recent_;
  int count_ = 0;
};

}  // namespace hvd
