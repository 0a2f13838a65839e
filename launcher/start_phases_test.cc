#include "launcher/start_phases.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

using std::chrono::milliseconds;

TEST(StartPhases, SumsWhatEachPhaseTook) {
  StartPhases phases;
  EXPECT_EQ(phases.current(), Phase::kWaiting);
  const Nanos begin = std::chrono::hours(5);
  phases.enter(Phase::kConnect, begin);
  phases.enter(Phase::kAuthenticate, begin + milliseconds(10));
  phases.enter(Phase::kConnect, begin + milliseconds(110));  // the connection was dropped
  phases.enter(Phase::kAuthenticate, begin + milliseconds(130));
  phases.enter(Phase::kStartAgent, begin + milliseconds(330));
  phases.enter(Phase::kHello, begin + milliseconds(330));
  EXPECT_EQ(phases.time_until_ready(), Nanos(0));
  phases.enter(Phase::kFabric, begin + milliseconds(350));
  EXPECT_EQ(phases.current(), Phase::kFabric);
  EXPECT_EQ(phases.time_until_ready(), milliseconds(350));
  EXPECT_EQ(phases.text(), "connect 0.03 s, authenticate 0.3 s, hello 0.02 s");
  phases.enter(Phase::kRunning, begin + std::chrono::minutes(1));
  EXPECT_EQ(phases.time_until_ready(), milliseconds(350)) << "waiting for others is not its own";
}

TEST(StartPhases, NothingOfAMillisecondIsSaidSo) {
  StartPhases phases;
  phases.enter(Phase::kHello, Nanos(5));
  phases.enter(Phase::kFabric, Nanos(6));
  EXPECT_EQ(phases.text(), "no phase of a millisecond");
}

}  // namespace
}  // namespace hvd
