#include "launcher/policy.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <array>

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

constexpr int kPeerLost = 71;  // exit code of a worker of the runtime

// Smaller is likelier to be the cause of the others.
int class_of_signal(int signal) {
  switch (signal) {
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
      return 0;
    case SIGKILL:
      return 1;
    case SIGABRT:
      return 5;
    case SIGPIPE:
    case SIGTERM:
      return 6;
    default:
      return 2;
  }
}

int class_of(const Cause& cause) {
  switch (cause.kind) {
    case CauseKind::kSignalled:
      return class_of_signal(cause.value);
    case CauseKind::kExited:
    case CauseKind::kFailedToStart:
    case CauseKind::kStartFailed:
      return 2;
    case CauseKind::kRegistration:
    case CauseKind::kStalled:
      return 1;
    case CauseKind::kNodeLost:
      return 3;
    case CauseKind::kTimeout:
    case CauseKind::kStartTimeout:
    case CauseKind::kExitTimeout:
    case CauseKind::kUserSignal:
    case CauseKind::kStdoutGone:
      return 4;
  }
  return 4;
}

// A worker of the runtime says itself that it only follows another one. Its end may be seen first:
// a process that dies closes its connections some time before it is gone.
bool is_follower(const Cause& cause) {
  return cause.kind == CauseKind::kExited && cause.value == kPeerLost;
}

bool is_earlier(const Cause& a, const Cause& b) {
  if (is_follower(a) != is_follower(b)) return is_follower(b);
  return a.time < b.time;
}

bool is_likelier(const Cause& a, const Cause& b) {
  const int class_a = class_of(a);
  const int class_b = class_of(b);
  if (class_a != class_b) return class_a < class_b;
  if (a.time != b.time) return a.time < b.time;
  return a.rank < b.rank;
}

const Cause& choose(const std::vector<Cause>& candidates) {
  const auto first = std::min_element(candidates.begin(), candidates.end(), is_earlier);
  const Cause* best = &*first;
  for (const Cause& cause : candidates) {
    if (is_follower(cause) != is_follower(*first)) continue;
    // Equal times cannot be ordered either, whatever the clocks' errors are.
    const bool is_close = cause.time - first->time <= cause.clock_error + first->clock_error;
    if (is_close && is_likelier(cause, *best)) best = &cause;
  }
  return *best;
}

int failed_to_start_code(const Cause& cause) {
  if (cause.stage != v1::SPAWN_STAGE_EXEC) return static_cast<int>(ExitCode::kInfrastructure);
  return static_cast<int>(cause.value == ENOENT ? ExitCode::kNotFound : ExitCode::kNotExecutable);
}

const char* stage_text(v1::SpawnStage stage) {
  switch (stage) {
    case v1::SPAWN_STAGE_PIPE:
      return "its pipes could not be made";
    case v1::SPAWN_STAGE_CLONE:
      return "its process could not be made";
    case v1::SPAWN_STAGE_SESSION:
      return "its session could not be made";
    case v1::SPAWN_STAGE_STDIO:
      return "its standard streams could not be set up";
    case v1::SPAWN_STAGE_LIMITS:
      return "its limits could not be set";
    case v1::SPAWN_STAGE_PDEATHSIG:
      return "its parent-death signal could not be set";
    case v1::SPAWN_STAGE_CHDIR:
      return "the working directory could not be entered";
    default:
      return "the set-up failed";
  }
}

std::string killed_text(const Cause& cause) {
  std::string text = "was killed by " + signal_name(cause.value);
  if (cause.core_dumped) text += " (core dumped)";
  if (cause.value == SIGBUS) {
    text += " (often /dev/shm or another mapped file system is full: see df /dev/shm there)";
  }
  if (cause.signal_was_ours) {
    text += " (passed on by hvdrun)";
  } else if (class_of_signal(cause.value) == 1 || cause.value == SIGTERM || cause.value == SIGINT ||
             cause.value == SIGHUP || cause.value == SIGQUIT) {
    text += " (not sent by hvdrun)";
  }
  return text;
}

// Whether a failed write to stdout means that nobody reads it any more.
bool is_reader_gone(const Cause& cause) { return cause.value == 0 || cause.value == EPIPE; }

std::string rank_text(const Cause& cause) {
  if (cause.pid <= 0) return fmt::format("rank {} ({})", cause.rank, cause.host);
  return fmt::format("rank {} ({}, pid {})", cause.rank, cause.host, cause.pid);
}

std::string with_detail(std::string text, const std::string& detail) {
  return detail.empty() ? text : text + ": " + detail;
}

std::string what_happened(const Cause& cause) {
  switch (cause.kind) {
    case CauseKind::kExited:
      return fmt::format("{} exited with code {}", rank_text(cause), cause.value);
    case CauseKind::kSignalled:
      return fmt::format("{} {}", rank_text(cause), killed_text(cause));
    case CauseKind::kFailedToStart:
      if (cause.stage == v1::SPAWN_STAGE_EXEC) {
        return fmt::format(
            "{} could not execute the command: {}{}", rank_text(cause), strerror(cause.value),
            cause.value == ENOEXEC ? " (a script needs a first line like #!/bin/sh)" : "");
      }
      return fmt::format("{} could not be started: {}: {}", rank_text(cause),
                         stage_text(cause.stage), strerror(cause.value));
    case CauseKind::kNodeLost:
      return with_detail(fmt::format("node {} was lost", cause.host), cause.text);
    case CauseKind::kStartFailed:
      return "the job could not be started: " + cause.text;
    case CauseKind::kTimeout:
      return fmt::format("the job was stopped because --timeout {} had passed",
                         format_duration(cause.limit));
    case CauseKind::kStartTimeout:
      return with_detail(fmt::format("the job was not started within --start-timeout {}",
                                     format_duration(cause.limit)),
                         cause.text);
    case CauseKind::kExitTimeout:
      return with_detail(
          fmt::format("the job was stopped because --exit-timeout {} had passed after the first "
                      "rank's end",
                      format_duration(cause.limit)),
          cause.text);
    case CauseKind::kRegistration:
      return cause.text;
    case CauseKind::kStalled:
      return "the job was stopped because it stalled: " + cause.text;
    case CauseKind::kUserSignal:
      return fmt::format("the job was stopped because hvdrun received {}",
                         signal_name(cause.value));
    case CauseKind::kStdoutGone:
      if (is_reader_gone(cause)) {
        return "the job was stopped because the reader of hvdrun's stdout has gone";
      }
      return fmt::format("the job was stopped because hvdrun cannot write to its stdout: {}",
                         strerror(cause.value));
  }
  return {};
}

}  // namespace

std::optional<Cause> cause_of(const v1::ExitReport& report, std::uint32_t node, std::string host,
                              Nanos time, Nanos clock_error) {
  Cause cause;
  switch (report.what_case()) {
    case v1::ExitReport::kExited:
      if (report.exited() == 0) return std::nullopt;
      cause.kind = CauseKind::kExited;
      cause.value = report.exited();
      break;
    case v1::ExitReport::kSignalled:
      cause.kind = CauseKind::kSignalled;
      cause.value = report.signalled();
      break;
    case v1::ExitReport::kFailedToStart:
      cause.kind = CauseKind::kFailedToStart;
      cause.value = report.failed_to_start().errno_value();
      cause.stage = report.failed_to_start().stage();
      break;
    case v1::ExitReport::WHAT_NOT_SET:
      // Never success by default: an end that nobody can tell is a failure of ours.
      cause.kind = CauseKind::kNodeLost;
      cause.text = fmt::format("its report does not say how rank {} ended", report.rank());
      break;
  }
  cause.rank = report.rank();
  cause.node = node;
  cause.host = std::move(host);
  cause.pid = report.pid();
  cause.core_dumped = report.core_dumped();
  cause.signal_was_ours = report.signal_was_ours();
  cause.stopped = report.stopped();
  cause.time = time;
  cause.clock_error = clock_error;
  cause.error_file = report.error_file();
  return cause;
}

Cause start_failure(const std::vector<NodeFailure>& failures, Nanos now) {
  Cause cause;
  cause.kind = CauseKind::kStartFailed;
  cause.time = now;
  const auto definite = std::find_if(
      failures.begin(), failures.end(),
      [](const NodeFailure& failure) { return failure.error.code != ExitCode::kTimeout; });
  if (definite != failures.end()) {
    cause.code = definite->error.code;
  } else if (!failures.empty()) {
    cause.code = ExitCode::kTimeout;
  }
  for (const NodeFailure& failure : failures) {
    if (!cause.text.empty()) cause.text += "; ";
    // Errors of a transport name the host themselves; no name stands twice.
    const bool is_named = failure.error.message.find(failure.host) != std::string::npos;
    cause.text += is_named ? failure.error.message : failure.error.within(failure.host).message;
  }
  return cause;
}

bool is_job_broken(const Cause& cause) {
  switch (cause.kind) {
    case CauseKind::kExited:
      return cause.value != 128 + SIGTERM;
    case CauseKind::kSignalled:
    case CauseKind::kFailedToStart:
    case CauseKind::kNodeLost:
    case CauseKind::kStartFailed:
    case CauseKind::kRegistration:
    case CauseKind::kStalled:
      return true;
    case CauseKind::kTimeout:
    case CauseKind::kStartTimeout:
    case CauseKind::kExitTimeout:
    case CauseKind::kUserSignal:
    case CauseKind::kStdoutGone:
      return false;
  }
  return true;
}

int exit_code(const Cause* cause) {
  if (cause == nullptr) return static_cast<int>(ExitCode::kOk);
  switch (cause->kind) {
    case CauseKind::kExited:
      return cause->value;
    case CauseKind::kSignalled:
    case CauseKind::kUserSignal:
      return 128 + cause->value;
    case CauseKind::kFailedToStart:
      return failed_to_start_code(*cause);
    case CauseKind::kStartFailed:
    case CauseKind::kRegistration:
    case CauseKind::kStalled:
      return static_cast<int>(cause->code);
    case CauseKind::kTimeout:
    case CauseKind::kStartTimeout:
      return static_cast<int>(ExitCode::kTimeout);
    case CauseKind::kNodeLost:
    case CauseKind::kExitTimeout:
      return static_cast<int>(ExitCode::kInfrastructure);
    case CauseKind::kStdoutGone:
      return static_cast<int>(is_reader_gone(*cause) ? ExitCode::kBrokenStdout
                                                     : ExitCode::kInfrastructure);
  }
  return static_cast<int>(ExitCode::kInfrastructure);
}

std::string sentence(const Cause& cause, const JobClock& clock) {
  std::string text = what_happened(cause);
  // What never started has no time of its own worth telling, and a limit is told with its length.
  if (cause.kind == CauseKind::kStartFailed || cause.kind == CauseKind::kStartTimeout) return text;
  text += " at " + format_time_of_day(cause.time + clock.realtime_offset);
  const bool is_limit = cause.kind == CauseKind::kTimeout || cause.kind == CauseKind::kExitTimeout;
  if (!is_limit && clock.start != Nanos{0} && cause.time >= clock.start) {
    text += fmt::format(", {} after the start", format_duration(cause.time - clock.start));
  }
  return text;
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  if (name == nullptr) return fmt::format("signal {}", signal);
  return fmt::format("SIG{}", name);
}

FirstCause::FirstCause(std::uint32_t num_nodes, Nanos settle)
    : settle_(settle), answered_(num_nodes, false) {}

bool FirstCause::add(Cause cause, Nanos now) {
  if (cause_) return false;
  // Whom the followers lost may be seen to end when they have already caused its node's stop.
  const bool is_lost_peer =
      is_open() && has_followers_only() && is_job_broken(cause) && !cause.signal_was_ours;
  if (cause.stopped && !is_lost_peer) return false;
  if (candidates_.empty()) opened_ = now;
  const bool has_gone = cause.kind == CauseKind::kNodeLost;
  const std::uint32_t node = cause.node;
  candidates_.push_back(std::move(cause));
  if (has_gone) node_answered(node);
  return true;
}

void FirstCause::node_answered(std::uint32_t node) {
  if (is_open() && node < answered_.size()) answered_[node] = true;
}

bool FirstCause::has_followers_only() const {
  return std::all_of(candidates_.begin(), candidates_.end(), is_follower);
}

bool FirstCause::is_settled() const {
  if (has_followers_only()) return false;  // whom they follow may still be dying
  return std::all_of(answered_.begin(), answered_.end(), [](bool answered) { return answered; });
}

bool FirstCause::decide(Nanos now) {
  if (is_open() && (is_settled() || now >= opened_ + settle_)) decide_at_once();
  return cause_.has_value();
}

void FirstCause::decide_at_once() {
  if (is_open()) cause_ = choose(candidates_);
}

std::optional<Nanos> FirstCause::deadline() const {
  if (!is_open()) return std::nullopt;
  return opened_ + settle_;
}

}  // namespace hvd
