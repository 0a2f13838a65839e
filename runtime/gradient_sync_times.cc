#include "runtime/gradient_sync_times.h"

#include "runtime/gradient_sync_cuda.h"

namespace hvd {
namespace {

// A GPU's clock and the host's drift apart by less than a microsecond in this time.
constexpr Nanos kRefreshPeriod = std::chrono::milliseconds(20);

}  // namespace

TimeBase::TimeBase(c10::Device device)
    : stream_(priority_stream(device)), event_(device.type(), c10::EventFlag::BACKEND_DEFAULT) {}

void TimeBase::refresh() {
  if (boottime_now() - time_ < kRefreshPeriod) return;
  event_.record(stream_);
  event_.synchronize();
  time_ = boottime_now();
}

Nanos TimeBase::time_of(const c10::Event& event) const {
  const std::chrono::duration<double, std::milli> elapsed(event_.elapsedTime(event));
  return time_ + std::chrono::duration_cast<Nanos>(elapsed);
}

void StageTimes::record(Stage stage, const c10::Stream& stream) {
  auto& event = events_[index(stage)];
  if (!event) {
    event.emplace(device_,
                  is_timed_ ? c10::EventFlag::BACKEND_DEFAULT : c10::EventFlag::PYTORCH_DEFAULT);
  }
  event->record(stream);
}

void StageTimes::block(Stage stage, const c10::Stream& stream) const {
  events_[index(stage)]->block(stream);
}

Nanos StageTimes::at(Stage stage, const TimeBase* base) const {
  return base == nullptr ? host_[index(stage)] : base->time_of(*events_[index(stage)]);
}

}  // namespace hvd
