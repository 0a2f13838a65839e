// What a rank did when, as a Chrome trace with Horovod's event names: a file that is valid JSON at
// any moment from its first write on, also after kill -9. A thread of its own writes, at least once
// a second; whoever tells an event only appends to a queue.
//
// pid of the trace: the rank; tid: the track and 1, so that kStepTrack, the steps of the trainer,
// is 0. Times are microseconds since the file's start, of which its header tells CLOCK_BOOTTIME, so
// that files of several nodes can be laid over each other by measured clock offsets.
//
// Bounds: only what begins within the window of steps, and at most max_bytes; then one last event,
// TIMELINE_END, says why it ends there. A disk that is full ends the timeline with a warning, not
// the training; a disk that hangs costs events, which are counted (TIMELINE_DROPPED), not memory.
//
// Threads: any may tell events; none of these calls waits for the disk but flush() and the end.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace hvd {

inline constexpr int kStepTrack = -1;
inline constexpr std::uint64_t kLeastTimelineBytes = 4096;

struct TimelineOptions {
  std::string path;  // of this rank's file; must not be a folder
  int rank = 0;
  std::string host;
  std::uint64_t first_step = 0;
  std::uint64_t last_step = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t max_bytes = 256ULL << 20;  // at least kLeastTimelineBytes
  bool marks_steps = false;                // HOROVOD_TIMELINE_MARK_CYCLES: CYCLE_START at each step
  std::chrono::milliseconds write_period{500};  // at most so long is an event not yet in the file
};

class Timeline {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Timeline>> open(TimelineOptions options);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // Names a track, once: "bucket 3: head.cls.0.weight ... (12 tensors)".
  void name_track(int track, std::string_view name);
  // The step that the next events belong to.
  void start_step(std::uint64_t step, Nanos at);
  // A span of a track, told when its end is known; spans of a track nest or follow each other.
  // args: JSON object text, or empty.
  void span(int track, std::string_view name, Nanos begin, Nanos end, std::string_view args = {});
  void instant(int track, std::string_view name, Nanos at);
  // Everything told so far is in the file when this returns, unless the disk hangs: it waits at
  // most 5 s.
  void flush();

 private:
  struct Writer;
  explicit Timeline(std::unique_ptr<Writer> writer);
  std::unique_ptr<Writer> writer_;
};

}  // namespace hvd
