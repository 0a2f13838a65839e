#include "training/petrv2/trainer/step_spans.h"

#include <utility>

#include "runtime/gradient_sync_cuda.h"

namespace hvd::petrv2 {

StepSpans::StepSpans(Timeline* timeline, at::Device device) : timeline_(timeline), device_(device) {
  if (timeline_ == nullptr) return;
  timeline_->name_track(kStepTrack, "steps");
  if (device_.is_cuda()) base_.emplace(device_);
}

void StepSpans::start_step(std::uint64_t step) {
  if (timeline_ == nullptr) return;
  last_ = std::exchange(marks_, {});
  timeline_->start_step(step, boottime_now());
}

void StepSpans::begin(const char* part) {
  if (timeline_ == nullptr) return;
  Mark mark{part, boottime_now(), std::nullopt};
  if (device_.is_cuda()) {
    mark.event.emplace(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
    mark.event->record(current_stream(device_));
  }
  marks_.push_back(std::move(mark));
}

void StepSpans::tell_last() {
  if (last_.empty()) return;
  if (base_) base_->refresh();
  const auto time_of = [&](const Mark& mark) {
    return base_ ? base_->time_of(*mark.event) : mark.time;
  };
  for (std::size_t i = 0; i + 1 < last_.size(); ++i) {
    if (last_[i].part == nullptr) continue;
    timeline_->span(kStepTrack, last_[i].part, time_of(last_[i]), time_of(last_[i + 1]));
  }
  last_.clear();
}

void StepSpans::tell_all() {
  tell_last();
  last_ = std::exchange(marks_, {});
  tell_last();
}

}  // namespace hvd::petrv2
