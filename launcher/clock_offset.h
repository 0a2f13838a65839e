// How a node's CLOCK_BOOTTIME maps to the launcher's, from the echoes of heartbeats. Pure; one
// object for each node, for the life of its connection.
//
// An echo bounds the offset to half its round trip. The best echo is kept; what it is worth fades
// with its age, because two clocks drift apart, so that a fresh echo replaces it in time.
#pragma once

#include <optional>

#include "base/clock.h"

namespace hvd {

class ClockOffset {
 public:
  struct Mapped {
    Nanos time{0};   // on the launcher's axis
    Nanos error{0};  // true time is within time +- error
  };

  // An echo: when the launcher sent the heartbeat, when the agent saw it, when the echo came back.
  // Echoes that contradict themselves (received before sent) are ignored.
  void add(Nanos sent, Nanos agent, Nanos received);

  // A time of the node, seen at `now`. Without any echo the node's event is taken to have happened
  // at `now`, with kUnknownError.
  [[nodiscard]] Mapped to_launcher(Nanos agent_time, Nanos now) const;

  static constexpr Nanos kUnknownError = std::chrono::seconds(1);

 private:
  struct Sample {
    Nanos offset{0};  // agent minus launcher
    Nanos error{0};
    Nanos taken{0};
  };
  [[nodiscard]] static Nanos aged_error(const Sample& sample, Nanos now);

  std::optional<Sample> best_;
};

}  // namespace hvd
