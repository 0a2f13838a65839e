// When a bucket passed the stages of its way. On the host a stage is a time; on a stream it is an
// event, whose time is known once the stream has come there.
//
// Threads: one at a time; a bucket's times are handed on with it.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <array>
#include <cstddef>
#include <optional>

#include "base/clock.h"

namespace hvd {

enum class Stage : std::uint8_t {
  kFull,     // its last gradient has come
  kFilled,   // all gradients are in its storage
  kTaken,    // the communication thread, or its stream, has come to it
  kLoaded,   // converted to what travels; the all-reduce begins
  kReduced,  // the all-reduce has ended
  kStored,   // converted back
};
inline constexpr std::size_t kNumStages = 6;

// An event whose time on the host is known, for the times of others.
class TimeBase {
 public:
  explicit TimeBase(c10::Device device);
  // Waits for the device for some microseconds, unless the last time is recent.
  void refresh();
  [[nodiscard]] Nanos time_of(const c10::Event& event) const;

 private:
  const c10::Stream stream_;  // nothing else runs on it
  c10::Event event_;
  Nanos time_{};
};

class StageTimes {
 public:
  // device: whose events; is_timed: they keep their time, for the timeline.
  StageTimes(c10::DeviceType device, bool is_timed) : device_(device), is_timed_(is_timed) {}

  void mark(Stage stage) { host_[index(stage)] = boottime_now(); }
  // When what `stream` has been given so far is done.
  void record(Stage stage, const c10::Stream& stream);
  // `stream` waits for a recorded stage.
  void block(Stage stage, const c10::Stream& stream) const;
  // Of a recorded stage.
  [[nodiscard]] bool has_passed(Stage stage) const { return events_[index(stage)]->query(); }

  // base: null for the host's times.
  [[nodiscard]] Nanos at(Stage stage, const TimeBase* base) const;

 private:
  static std::size_t index(Stage stage) { return static_cast<std::size_t>(stage); }

  const c10::DeviceType device_;
  const bool is_timed_;
  std::array<Nanos, kNumStages> host_{};
  std::array<std::optional<c10::Event>, kNumStages> events_;  // kept for the next bucket
};

}  // namespace hvd
