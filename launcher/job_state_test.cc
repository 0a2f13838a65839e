#include "launcher/job_state.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

TEST(JobState, TheGoodWayLeadsToTheEnd) {
  JobState state = JobState::kReaching;
  for (const JobEvent event : {JobEvent::kAllHellos, JobEvent::kFabricDone, JobEvent::kAllStarted,
                               JobEvent::kAllNodesEnded}) {
    const auto next = next_state(state, event);
    ASSERT_TRUE(next.has_value()) << name_of(event) << " in " << name_of(state);
    state = *next;
  }
  EXPECT_EQ(state, JobState::kEnded);
}

TEST(JobState, ACauseStopsEveryLivingState) {
  for (const JobState state :
       {JobState::kReaching, JobState::kFabric, JobState::kStarting, JobState::kRunning}) {
    EXPECT_EQ(next_state(state, JobEvent::kCause), JobState::kStopping) << name_of(state);
  }
}

TEST(JobState, NothingRevivesAStoppedJob) {
  for (int event = 0; event < static_cast<int>(JobEvent::kCount); ++event) {
    const auto next = next_state(JobState::kStopping, static_cast<JobEvent>(event));
    EXPECT_TRUE(!next || *next == JobState::kEnded) << event;
    EXPECT_EQ(next_state(JobState::kEnded, static_cast<JobEvent>(event)), std::nullopt) << event;
  }
}

TEST(JobState, StepsCannotBeSkipped) {
  EXPECT_EQ(next_state(JobState::kReaching, JobEvent::kAllStarted), std::nullopt);
  EXPECT_EQ(next_state(JobState::kFabric, JobEvent::kAllNodesEnded), std::nullopt);
}

}  // namespace
}  // namespace hvd
