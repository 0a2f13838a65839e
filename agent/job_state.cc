#include "agent/job_state.h"

#include <array>

namespace hvd {
namespace {

using S = JobState;
using A = JobAction;
using Row = std::array<JobStep, kNumJobEvents>;

// clang-format off
constexpr std::array<Row, kNumJobStates> kTable = {{
  // kNew: without a configuration the shim leaves as soon as its socket is closed
  {{{S::kReady, A::kConfigure}, {S::kNew, A::kRefuse}, {S::kNew, A::kNone}, {S::kLeaving, A::kStop},
    {S::kLeaving, A::kStop}, {S::kLeaving, A::kStop}, {S::kClosing, A::kReportLost}, {S::kNew, A::kNone}}},
  // kReady
  {{{S::kReady, A::kRefuse}, {S::kRunning, A::kSpawn}, {S::kFinished, A::kNone}, {S::kLeaving, A::kStop},
    {S::kLeaving, A::kStop}, {S::kLeaving, A::kStop}, {S::kClosing, A::kReportLost}, {S::kReady, A::kNone}}},
  // kRunning
  {{{S::kRunning, A::kRefuse}, {S::kRunning, A::kRefuse}, {S::kFinished, A::kNone}, {S::kLeaving, A::kStop},
    {S::kLeaving, A::kStop}, {S::kLeaving, A::kStop}, {S::kClosing, A::kReportLost}, {S::kRunning, A::kNone}}},
  // kFinished
  {{{S::kFinished, A::kRefuse}, {S::kFinished, A::kRefuse}, {S::kFinished, A::kNone}, {S::kLeaving, A::kAwaitShim},
    {S::kLeaving, A::kAwaitShim}, {S::kLeaving, A::kAwaitShim}, {S::kIdle, A::kNone}, {S::kFinished, A::kNone}}},
  // kIdle
  {{{S::kIdle, A::kRefuse}, {S::kIdle, A::kRefuse}, {S::kIdle, A::kNone}, {S::kClosing, A::kClose},
    {S::kClosing, A::kClose}, {S::kClosing, A::kClose}, {S::kIdle, A::kNone}, {S::kIdle, A::kNone}}},
  // kLeaving
  {{{S::kLeaving, A::kNone}, {S::kLeaving, A::kNone}, {S::kLeaving, A::kNone}, {S::kLeaving, A::kNone},
    {S::kLeaving, A::kNone}, {S::kLeaving, A::kNone}, {S::kClosing, A::kClose}, {S::kClosing, A::kClose}}},
  // kClosing
  {{{S::kClosing, A::kNone}, {S::kClosing, A::kNone}, {S::kClosing, A::kNone}, {S::kClosing, A::kNone},
    {S::kClosing, A::kNone}, {S::kClosing, A::kNone}, {S::kClosing, A::kNone}, {S::kClosing, A::kNone}}},
}};
// clang-format on
static_assert(static_cast<int>(JobState::kClosing) + 1 == kNumJobStates);
static_assert(static_cast<int>(JobEvent::kLeaveDeadline) + 1 == kNumJobEvents);

constexpr std::array<const char*, kNumJobStates> kStateNames = {
    "new", "ready", "running", "finished", "idle", "leaving", "closing"};
constexpr std::array<const char*, kNumJobEvents> kEventNames = {
    "hello", "spawn", "finished", "bye", "stream end", "lease over", "shim gone", "leave deadline"};

}  // namespace

JobStep job_step(JobState state, JobEvent event) {
  return kTable[static_cast<std::size_t>(state)][static_cast<std::size_t>(event)];
}

const char* job_state_name(JobState state) { return kStateNames[static_cast<std::size_t>(state)]; }
const char* job_event_name(JobEvent event) { return kEventNames[static_cast<std::size_t>(event)]; }

}  // namespace hvd
