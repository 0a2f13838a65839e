#include "agent/shim/ladder.h"

#include <gtest/gtest.h>

#include <vector>

namespace hvd {
namespace {

using std::chrono::seconds;

constexpr Nanos kVerify = seconds(5);

struct Happening {
  int at;     // seconds
  int grace;  // of a stop; -1: `event` happens instead
  LadderEvent event;
  LadderAction action;
  Rung rung;
  int deadline;  // seconds; -1: never
};

constexpr auto kStop = LadderEvent::kStop;  // stands beside a grace, unused
constexpr auto kNone = LadderAction::kNone;
constexpr auto kKillAll = LadderAction::kKillAll;

struct Story {
  const char* name;
  std::vector<Happening> happenings;
};

const std::vector<Story> kStories = {
    {"everything obeys",
     {{10, 10, kStop, LadderAction::kSignalGroups, Rung::kWaiting, 20},
      {11, -1, LadderEvent::kLeadersGone, kNone, Rung::kWaiting, 20},
      {12, -1, LadderEvent::kGroupsGone, kKillAll, Rung::kKilling, 17},
      {12, -1, LadderEvent::kEmpty, LadderAction::kReportClean, Rung::kDone, -1}}},
    {"deaf workers are killed after the grace",
     {{10, 3, kStop, LadderAction::kSignalGroups, Rung::kWaiting, 13},
      {13, -1, LadderEvent::kDeadline, kKillAll, Rung::kKilling, 18},
      {14, -1, LadderEvent::kEmpty, LadderAction::kReportClean, Rung::kDone, -1}}},
    {"a second stop only shortens",
     {{0, 10, kStop, LadderAction::kSignalGroups, Rung::kWaiting, 10},
      {1, 30, kStop, LadderAction::kShorten, Rung::kWaiting, 10},
      {2, 3, kStop, LadderAction::kShorten, Rung::kWaiting, 5}}},
    {"a stop without grace kills at once", {{7, 0, kStop, kKillAll, Rung::kKilling, 12}}},
    {"a stop without grace ends a grace under way",
     {{0, 10, kStop, LadderAction::kSignalGroups, Rung::kWaiting, 10},
      {1, 0, kStop, kKillAll, Rung::kKilling, 6},
      {2, 0, kStop, kNone, Rung::kKilling, 6},
      {3, 10, kStop, kNone, Rung::kKilling, 6}}},
    {"what outlives the kill is reported",
     {{0, 0, kStop, kKillAll, Rung::kKilling, 5},
      {5, -1, LadderEvent::kDeadline, LadderAction::kReportSurvivors, Rung::kDone, -1},
      {6, -1, LadderEvent::kEmpty, kNone, Rung::kDone, -1},
      {6, 0, kStop, kNone, Rung::kDone, -1}}},
    {"all have ended by themselves: what they left gets no polite signal",
     {{9, -1, LadderEvent::kLeadersGone, kKillAll, Rung::kKilling, 14},
      {9, -1, LadderEvent::kEmpty, LadderAction::kReportClean, Rung::kDone, -1}}},
    {"while workers run, looks at the rest decide nothing",
     {{1, -1, LadderEvent::kGroupsGone, kNone, Rung::kRunning, -1},
      {1, -1, LadderEvent::kEmpty, kNone, Rung::kRunning, -1},
      {1, -1, LadderEvent::kDeadline, kNone, Rung::kRunning, -1}}},
    {"an empty look during the grace is no proof",
     {{0, 10, kStop, LadderAction::kSignalGroups, Rung::kWaiting, 10},
      {1, -1, LadderEvent::kEmpty, kNone, Rung::kWaiting, 10}}},
};

TEST(Ladder, FollowsItsTable) {
  for (const Story& story : kStories) {
    Ladder ladder(kVerify, seconds(0));
    int index = 0;
    for (const Happening& h : story.happenings) {
      SCOPED_TRACE(std::string(story.name) + ", happening " + std::to_string(index++));
      const LadderAction action = h.grace >= 0 ? ladder.stop(seconds(h.grace), seconds(h.at))
                                               : ladder.handle(h.event, seconds(h.at));
      EXPECT_EQ(action, h.action);
      EXPECT_STREQ(rung_name(ladder.rung()), rung_name(h.rung));
      EXPECT_EQ(ladder.deadline(), h.deadline < 0 ? Nanos::max() : Nanos(seconds(h.deadline)));
    }
  }
}

TEST(Ladder, NoEventLeadsDown) {
  for (const int start : {0, 1, 2, 3}) {
    for (int event = 0; event < kNumLadderEvents; ++event) {
      Ladder ladder(kVerify, seconds(0));
      if (start >= 1) (void)ladder.stop(seconds(1), seconds(0));
      if (start >= 2) (void)ladder.handle(LadderEvent::kDeadline, seconds(1));
      if (start >= 3) (void)ladder.handle(LadderEvent::kEmpty, seconds(1));
      ASSERT_EQ(static_cast<int>(ladder.rung()), start);
      (void)ladder.handle(static_cast<LadderEvent>(event), seconds(2));
      EXPECT_GE(static_cast<int>(ladder.rung()), start) << "event " << event;
    }
  }
}

}  // namespace
}  // namespace hvd
