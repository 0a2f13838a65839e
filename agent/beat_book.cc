#include "agent/beat_book.h"

#include <chrono>

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

Nanos period_of(const v1::WorkerBeat& beat) {
  return beat.period_ms() > 0 ? Nanos(std::chrono::milliseconds(beat.period_ms()))
                              : BeatBook::kPeriod;
}

}  // namespace

void BeatBook::take(const v1::WorkerBeat& beat, pid_t pid, Nanos now) {
  if (beat.ByteSizeLong() > kMaxBeatBytes) return;
  Page& page = pages_[beat.rank()];
  page.beat = beat;
  page.beat.clear_silent_ms();
  page.beat.clear_process_state();
  page.beat.set_pid(pid);
  page.pid = pid;
  page.heard = now;
  page.is_new = true;
}

v1::WorkerBeats BeatBook::collect(Nanos now, const StateOf& state_of) {
  v1::WorkerBeats result;
  for (auto& [rank, page] : pages_) {
    const Nanos period = period_of(page.beat);
    const Nanos silent = now - page.heard;
    const bool is_late = silent > kLatePeriods * period && now - page.told >= period;
    if (!page.is_new && !is_late) continue;
    page.is_new = false;
    page.told = now;
    v1::WorkerBeat& beat = *result.add_beats();
    beat = page.beat;
    if (!is_late) continue;
    beat.set_silent_ms(to_ms(silent));
    const char state = page.pid > 0 ? state_of(page.pid) : '\0';
    if (state != '\0') beat.set_process_state(std::string(1, state));
  }
  return result;
}

}  // namespace hvd
