#include "launcher/start_phases.h"

#include <numeric>

namespace hvd {
namespace {

constexpr Nanos kLeastShown = std::chrono::milliseconds(1);
// Of a node alone; in the later ones it waits for the others.
constexpr auto kNumOwn = static_cast<std::size_t>(Phase::kFabric);

}  // namespace

void StartPhases::enter(Phase phase, Nanos now) {
  if (current_ != Phase::kWaiting) spent_[static_cast<std::size_t>(current_)] += now - entered_;
  current_ = phase;
  entered_ = now;
}

Nanos StartPhases::time_until_ready() const {
  if (current_ < Phase::kFabric) return Nanos(0);
  return std::accumulate(spent_.begin(), spent_.begin() + kNumOwn, Nanos(0));
}

std::string StartPhases::text() const {
  std::string text;
  for (std::size_t i = 0; i < kNumOwn; ++i) {
    if (spent_[i] < kLeastShown) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", phase_name(static_cast<Phase>(i)),
                        format_duration(spent_[i]));
  }
  return text.empty() ? "no phase of a millisecond" : text;
}

}  // namespace hvd
