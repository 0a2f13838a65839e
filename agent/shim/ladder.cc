#include "agent/shim/ladder.h"

#include <algorithm>
#include <array>

#include "base/log.h"

namespace hvd {
namespace {

struct Move {
  Rung next;
  LadderAction action;
};

using Row = std::array<Move, kNumLadderEvents>;
constexpr auto kRun = Rung::kRunning;
constexpr auto kWait = Rung::kWaiting;
constexpr auto kKill = Rung::kKilling;
constexpr auto kEnd = Rung::kDone;
constexpr auto kNone = LadderAction::kNone;
constexpr auto kKillAll = LadderAction::kKillAll;

constexpr std::array<Row, kNumRungs> kTable = {{
    // kStop, kStopNow, kLeadersGone, kGroupsGone, kEmpty, kDeadline
    Row{{{kWait, LadderAction::kSignalGroups},
         {kKill, kKillAll},
         {kKill, kKillAll},
         {kRun, kNone},
         {kRun, kNone},
         {kRun, kNone}}},
    Row{{{kWait, LadderAction::kShorten},
         {kKill, kKillAll},
         {kWait, kNone},
         {kKill, kKillAll},
         {kWait, kNone},
         {kKill, kKillAll}}},
    Row{{{kKill, kNone},
         {kKill, kNone},
         {kKill, kNone},
         {kKill, kNone},
         {kEnd, LadderAction::kReportClean},
         {kEnd, LadderAction::kReportSurvivors}}},
    Row{{{kEnd, kNone}, {kEnd, kNone}, {kEnd, kNone}, {kEnd, kNone}, {kEnd, kNone}, {kEnd, kNone}}},
}};
static_assert(kTable.size() == static_cast<std::size_t>(Rung::kDone) + 1);
static_assert(kNumLadderEvents == static_cast<int>(LadderEvent::kDeadline) + 1);

constexpr std::array<const char*, kNumRungs> kRungNames = {"running", "waiting", "killing", "done"};
constexpr std::array<const char*, kNumLadderEvents> kEventNames = {
    "stop", "stop now", "leaders gone", "groups gone", "empty", "deadline"};

}  // namespace

const char* rung_name(Rung rung) { return kRungNames[static_cast<std::size_t>(rung)]; }

LadderAction Ladder::stop(Nanos grace, Nanos now) {
  if (grace <= Nanos(0)) return handle(LadderEvent::kStopNow, now);
  const LadderAction action = handle(LadderEvent::kStop, now);
  if (rung_ == Rung::kWaiting) deadline_ = std::min(deadline_, now + grace);
  return action;
}

LadderAction Ladder::handle(LadderEvent event, Nanos now) {
  const Move move = kTable[static_cast<std::size_t>(rung_)][static_cast<std::size_t>(event)];
  if (move.next != rung_) {
    log(LogLevel::kDebug, "ladder: {}: {} -> {} after {}",
        kEventNames[static_cast<std::size_t>(event)], rung_name(rung_), rung_name(move.next),
        format_duration(now - entered_));
    rung_ = move.next;
    entered_ = now;
    deadline_ = rung_ == Rung::kKilling ? now + verify_ : Nanos::max();
  }
  return move.action;
}

}  // namespace hvd
