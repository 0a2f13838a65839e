// The words for a cause.
#include <errno.h>
#include <signal.h>
#include <string.h>

#include <string_view>

#include "base/replace_all.h"
#include "launcher/policy.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

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

// Where the kernel has put the core, from core(5)'s pattern of the node; what only the node knows
// of it stays a pattern.
std::string core_text(const Cause& cause) {
  const std::string_view pattern = cause.core_pattern;
  if (pattern.empty()) return "core dumped";
  if (pattern.front() == '|') {
    return fmt::format("core dumped, given to {}", pattern.substr(1, pattern.find(' ') - 1));
  }
  std::string name(pattern);
  replace_all(name, "%p", std::to_string(cause.pid));
  return fmt::format("core dumped{} as {}",
                     pattern.front() == '/' ? "" : " in its working directory", name);
}

std::string killed_text(const Cause& cause) {
  std::vector<std::string> notes;
  if (cause.core_dumped) notes.push_back(core_text(cause));
  if (cause.value == SIGBUS) {
    notes.emplace_back(
        "often /dev/shm or another mapped file system is full: see df /dev/shm there");
  }
  if (cause.signal_was_ours) {
    notes.emplace_back("passed on by hvdrun");
  } else if (!cause.oom_proof.empty()) {
    notes.push_back("out of memory: " + cause.oom_proof);
  } else if (is_sent_by_somebody(cause.value)) {
    notes.emplace_back("not sent by hvdrun");
    if (!cause.no_oom_text.empty()) notes.push_back(cause.no_oom_text);
  }
  std::string text =
      fmt::format("was killed by {} (signal {}", signal_name(cause.value), cause.value);
  for (const std::string& note : notes) text += "; " + note;
  return text + ")";
}

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
      if (cause.received_signal != 0) {
        return fmt::format("{} received {} (not sent by hvdrun) and exited with code {}",
                           rank_text(cause), signal_name(cause.received_signal), cause.value);
      }
      if (!cause.mpi_end.empty()) return fmt::format("{} {}", rank_text(cause), cause.mpi_end);
      return fmt::format("{} exited with code {}", rank_text(cause), cause.value);
    case CauseKind::kSignalled:
      return fmt::format("{} {}", rank_text(cause), killed_text(cause));
    case CauseKind::kLeftEarly:
      return fmt::format("{} ended with 0 before the others, which then lost it", rank_text(cause));
    case CauseKind::kFailedToStart:
      if (cause.stage == v1::SPAWN_STAGE_EXEC) {
        return fmt::format(
            "{} could not execute the command: {}{}", rank_text(cause), strerror(cause.value),
            cause.value == ENOEXEC ? " (a script needs a first line like #!/bin/sh)" : "");
      }
      return with_detail(fmt::format("{} could not be started: {}: {}", rank_text(cause),
                                     stage_text(cause.stage), strerror(cause.value)),
                         cause.text);
    case CauseKind::kNodeLost:
      return with_detail(fmt::format("node {} was lost", cause.host), cause.text);
    case CauseKind::kNodeStopped:
      return with_detail(fmt::format("node {} has stopped its ranks", cause.host), cause.text);
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

const char* class_name(CauseKind kind) {
  switch (kind) {
    case CauseKind::kExited:
      return "exited";
    case CauseKind::kSignalled:
      return "signalled";
    case CauseKind::kFailedToStart:
      return "failed_to_start";
    case CauseKind::kLeftEarly:
      return "left_early";
    case CauseKind::kNodeLost:
      return "node_lost";
    case CauseKind::kNodeStopped:
      return "node_stopped";
    case CauseKind::kStartFailed:
      return "start_failed";
    case CauseKind::kTimeout:
      return "timeout";
    case CauseKind::kStartTimeout:
      return "start_timeout";
    case CauseKind::kExitTimeout:
      return "exit_timeout";
    case CauseKind::kUserSignal:
      return "user_signal";
    case CauseKind::kRegistration:
      return "registration";
    case CauseKind::kStalled:
      return "stalled";
    case CauseKind::kStdoutGone:
      return "stdout_gone";
  }
  return "unknown";
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  if (name == nullptr) return fmt::format("signal {}", signal);
  return fmt::format("SIG{}", name);
}

}  // namespace hvd
