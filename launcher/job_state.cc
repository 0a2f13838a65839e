#include "launcher/job_state.h"

namespace hvd {
namespace {

constexpr auto kNumStates = static_cast<std::size_t>(JobState::kCount);
constexpr auto kNumEvents = static_cast<std::size_t>(JobEvent::kCount);
constexpr JobState kIgnored = JobState::kCount;

using Row = std::array<JobState, kNumEvents>;

// Columns: kAllHellos, kFabricDone, kAllStarted, kCause, kAllNodesEnded.
constexpr std::array<Row, kNumStates> kNext = {{
    /* kReaching */ {JobState::kFabric, kIgnored, kIgnored, JobState::kStopping, kIgnored},
    /* kFabric   */ {kIgnored, JobState::kStarting, kIgnored, JobState::kStopping, kIgnored},
    /* kStarting */ {kIgnored, kIgnored, JobState::kRunning, JobState::kStopping, kIgnored},
    /* kRunning  */ {kIgnored, kIgnored, kIgnored, JobState::kStopping, JobState::kEnded},
    /* kStopping */ {kIgnored, kIgnored, kIgnored, kIgnored, JobState::kEnded},
    /* kEnded    */ {kIgnored, kIgnored, kIgnored, kIgnored, kIgnored},
}};
static_assert(kNext.size() == kNumStates);

constexpr std::array<const char*, kNumStates> kStateNames = {"reaching", "fabric",   "starting",
                                                             "running",  "stopping", "ended"};
constexpr std::array<const char*, kNumEvents> kEventNames = {
    "all hellos", "fabric done", "all started", "first cause", "all nodes ended"};

}  // namespace

const char* name_of(JobState state) { return kStateNames.at(static_cast<std::size_t>(state)); }
const char* name_of(JobEvent event) { return kEventNames.at(static_cast<std::size_t>(event)); }

std::optional<JobState> next_state(JobState state, JobEvent event) {
  const JobState next =
      kNext.at(static_cast<std::size_t>(state)).at(static_cast<std::size_t>(event));
  if (next == kIgnored) return std::nullopt;
  return next;
}

}  // namespace hvd
