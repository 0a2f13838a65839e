// Which phase of its start a node is in, and how long each one took. Pure.
#pragma once

#include <array>
#include <string>

#include "base/clock.h"
#include "launcher/transport/transport.h"

namespace hvd {

class StartPhases {
 public:
  void enter(Phase phase, Nanos now);
  [[nodiscard]] Phase current() const { return current_; }

  // From the first phase until the node had all that it needs by itself: its hello and, where they
  // were wanted, the staged files. Zero before that.
  [[nodiscard]] Nanos time_until_ready() const;

  // "connect 0.010 s, authenticate 0.12 s" up to then; phases below a millisecond are left out.
  // A phase that was entered again, after a dropped connection, is one sum.
  [[nodiscard]] std::string text() const;

 private:
  Phase current_ = Phase::kWaiting;
  Nanos entered_{};
  std::array<Nanos, static_cast<std::size_t>(Phase::kRunning) + 1> spent_{};
};

}  // namespace hvd
