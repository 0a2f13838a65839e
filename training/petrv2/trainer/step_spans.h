// The parts of a step on the timeline: forward, backward, optimiser. On a GPU they are the device's
// times, so that the all-reduces of the buckets can be seen inside backward; told one step later,
// when they are known without waiting.
//
// Thread: the trainer's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "runtime/gradient_sync_times.h"
#include "runtime/timeline.h"
#include "training/torch.h"

namespace hvd::petrv2 {

class StepSpans {
 public:
  // timeline: null: nothing is marked. Not owned, outlives this.
  StepSpans(Timeline* timeline, at::Device device);

  void start_step(std::uint64_t step);
  // Ends the part before, if there is one.
  void begin(const char* part);
  void end() { begin(nullptr); }
  // Of the step before this one, which the device has come through: tells its parts.
  void tell_last();
  // Of all steps, once the device has come through: before a pause, and at the end.
  void tell_all();

 private:
  struct Mark {
    const char* part;  // that begins here; null: none
    Nanos time{};      // of the CPU
    std::optional<c10::Event> event;
  };
  Timeline* const timeline_;
  const at::Device device_;
  std::optional<TimeBase> base_;  // of a GPU
  std::vector<Mark> last_;        // of the step before
  std::vector<Mark> marks_;       // of this one
};

}  // namespace hvd::petrv2
