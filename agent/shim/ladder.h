// The stop ladder as a decision table: what to do next, given the rung and what happened. I/O and
// clocks are the caller's; times are CLOCK_BOOTTIME.
//
//   running   a stop begins: first signal to every worker's group, then wait for the grace
//             a stop without grace, or the last leader has ended: kill what is left
//   waiting   another stop only shortens the wait, one without grace ends it
//             nothing that was signalled is left, or the grace is over: kill what is left
//   killing   the container is proved empty: done, clean
//             the verify time is over: done, survivors are reported
//   done      nothing moves it
//
// A rung is never left downwards, and what does not apply is ignored.
#pragma once

#include "base/clock.h"

namespace hvd {

enum class Rung { kRunning, kWaiting, kKilling, kDone };
inline constexpr int kNumRungs = 4;

enum class LadderEvent {
  kStop,         // asked for with a grace
  kStopNow,      // asked for without
  kLeadersGone,  // no worker's leader is left
  kGroupsGone,   // no leader and no member of a worker's group is left
  kEmpty,        // no process of the job is left: verified
  kDeadline,     // of the rung
};
inline constexpr int kNumLadderEvents = 6;

enum class LadderAction {
  kNone,
  kSignalGroups,
  kShorten,  // done by the ladder itself
  kKillAll,
  kReportClean,
  kReportSurvivors,
};

[[nodiscard]] const char* rung_name(Rung rung);

class Ladder {
 public:
  Ladder(Nanos verify, Nanos now) : verify_(verify), entered_(now) {}

  // A stop with a grace of zero or less is one without grace.
  LadderAction stop(Nanos grace, Nanos now);
  LadderAction handle(LadderEvent event, Nanos now);

  [[nodiscard]] Rung rung() const { return rung_; }
  // When kDeadline is due; Nanos::max() if never.
  [[nodiscard]] Nanos deadline() const { return deadline_; }

 private:
  const Nanos verify_;
  Nanos entered_;
  Nanos deadline_ = Nanos::max();
  Rung rung_ = Rung::kRunning;
};

}  // namespace hvd
