#include "launcher/clock_offset.h"

namespace hvd {
namespace {

// Two ordinary crystals, 50 ppm each.
constexpr std::int64_t kDriftPerMillion = 100;

}  // namespace

Nanos ClockOffset::aged_error(const Sample& sample, Nanos now) {
  const Nanos age = now > sample.taken ? now - sample.taken : Nanos{0};
  return sample.error + age / 1'000'000 * kDriftPerMillion;
}

void ClockOffset::add(Nanos sent, Nanos agent, Nanos received) {
  if (received < sent) return;
  const Nanos half_trip = (received - sent) / 2;
  const Sample sample{agent - (sent + half_trip), half_trip, received};
  if (!best_ || sample.error <= aged_error(*best_, received)) best_ = sample;
}

ClockOffset::Mapped ClockOffset::to_launcher(Nanos agent_time, Nanos now) const {
  if (!best_) return {now, kUnknownError};
  return {agent_time - best_->offset, aged_error(*best_, now)};
}

}  // namespace hvd
