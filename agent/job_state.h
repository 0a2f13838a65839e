// The life of the one job of an agent, as a table. Pure.
//
// kNew: the stream is there, nobody has said hello. kReady: the shim is configured, nothing was
// started. kRunning: workers were started. kFinished: the shim has reported the end and is leaving.
// kIdle: it has left; the launcher may still take output. kLeaving: nobody listens any more, or the
// launcher has said goodbye; the shim is stopping. kClosing: the servers are shutting down, nothing
// matters any more.
#pragma once

#include <cstdint>

namespace hvd {

enum class JobState : std::uint8_t {
  kNew,
  kReady,
  kRunning,
  kFinished,
  kIdle,
  kLeaving,
  kClosing,
};
inline constexpr int kNumJobStates = 7;

enum class JobEvent : std::uint8_t {
  kHello,
  kSpawn,
  kFinished,  // the shim's last message
  kBye,
  kStreamEnd,      // the launcher or the way to it has gone
  kLeaseOver,      // so long without a heartbeat
  kShimGone,       // its process or socket has ended
  kLeaveDeadline,  // the shim was given enough time
};
inline constexpr int kNumJobEvents = 8;

enum class JobAction : std::uint8_t {
  kNone,
  kRefuse,     // a request that does not fit the state: the control call ends with an error
  kConfigure,  // make the job's folder, configure the shim, answer the hello
  kSpawn,
  kStop,        // tell the shim to climb the ladder, and wait for it with a deadline
  kAwaitShim,   // wait for the shim to leave, with a deadline
  kClose,       // shut the servers down and leave
  kReportLost,  // the shim died under its workers: clean up, tell the launcher
};

struct JobStep {
  JobState next;
  JobAction action;
};

[[nodiscard]] JobStep job_step(JobState state, JobEvent event);

[[nodiscard]] const char* job_state_name(JobState state);
[[nodiscard]] const char* job_event_name(JobEvent event);

}  // namespace hvd
