#include "agent/job_state.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

TEST(JobStateTable, TheLaunchersEndAlwaysLeadsOut) {
  for (int i = 0; i < static_cast<int>(JobState::kLeaving); ++i) {
    const JobStep step = job_step(static_cast<JobState>(i), JobEvent::kStreamEnd);
    EXPECT_TRUE(step.next == JobState::kLeaving || step.next == JobState::kClosing) << i;
    EXPECT_NE(step.action, JobAction::kNone) << i;
  }
}

TEST(JobStateTable, NormalLife) {
  JobState state = JobState::kNew;
  for (const JobEvent event : {JobEvent::kHello, JobEvent::kSpawn, JobEvent::kFinished,
                               JobEvent::kShimGone, JobEvent::kBye}) {
    const JobStep step = job_step(state, event);
    EXPECT_NE(step.action, JobAction::kRefuse) << job_event_name(event);
    state = step.next;
  }
  EXPECT_EQ(state, JobState::kClosing);
}

TEST(JobStateTable, ShimThatDiesUnderWorkersIsReported) {
  EXPECT_EQ(job_step(JobState::kRunning, JobEvent::kShimGone).action, JobAction::kReportLost);
  EXPECT_EQ(job_step(JobState::kFinished, JobEvent::kShimGone).action, JobAction::kNone);
}

}  // namespace
}  // namespace hvd
