// The states of a job and what moves it between them. Pure.
//
//   reaching --all nodes said hello--> fabric --addresses known--> starting --last worker runs-->
//   running any of these --first cause--> stopping --all nodes ended or given up--> ended running
//   --all ranks exited 0--> ended running without a cause but leftovers to clean up stays running
//   until the nodes say they are done.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace hvd {

enum class JobState { kReaching, kFabric, kStarting, kRunning, kStopping, kEnded, kCount };
enum class JobEvent { kAllHellos, kFabricDone, kAllStarted, kCause, kAllNodesEnded, kCount };

[[nodiscard]] const char* name_of(JobState state);
[[nodiscard]] const char* name_of(JobEvent event);

// The state after `event`; nullopt: the event means nothing in this state.
[[nodiscard]] std::optional<JobState> next_state(JobState state, JobEvent event);

}  // namespace hvd
