#include "launcher/policy.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <array>

#include "launcher/report_error_file.h"
#include "launcher/report_evidence.h"

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
    case SIGABRT:
      return 5;
    case SIGPIPE:
      return 6;
    default:
      // What only follows from another rank's end is never sent by somebody.
      return is_sent_by_somebody(signal) ? 1 : 2;
  }
}

int class_of(const Cause& cause) {
  switch (cause.kind) {
    case CauseKind::kSignalled:
      return cause.oom_proof.empty() ? class_of_signal(cause.value) : 0;
    case CauseKind::kExited:
    case CauseKind::kLeftEarly:
    case CauseKind::kFailedToStart:
    case CauseKind::kStartFailed:
      return 2;
    case CauseKind::kRegistration:
    case CauseKind::kStalled:
      return 1;
    case CauseKind::kNodeLost:
    case CauseKind::kNodeStopped:
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
  if (cause.kind != CauseKind::kExited) return false;
  const bool was_told = cause.value == 128 + SIGTERM || cause.value == 128 + SIGINT;
  const bool has_agreed = was_told && cause.uses_runtime && cause.received_signal == 0;
  return cause.value == kPeerLost || has_agreed;
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

// Equal times cannot be ordered either, whatever the clocks' errors are.
bool is_close(const Cause& first, const Cause& later) {
  const bool is_same_clock = first.node == later.node;
  const Nanos error = is_same_clock ? Nanos(0) : later.clock_error + first.clock_error;
  return later.time - first.time <= error;
}

const Cause& choose(const std::vector<Cause>& candidates) {
  const auto first = std::min_element(candidates.begin(), candidates.end(), is_earlier);
  const Cause* best = &*first;
  for (const Cause& cause : candidates) {
    if (is_follower(cause) != is_follower(*first)) continue;
    if (is_close(*first, cause) && is_likelier(cause, *best)) best = &cause;
  }
  return *best;
}

// The first of those that had left before `follower` missed them; nullptr: none had.
const Cause* first_to_leave(const std::vector<Cause>& early_ends, const Cause& follower) {
  const Cause* first = nullptr;
  for (const Cause& left : early_ends) {
    const bool was_before = left.time <= follower.time + left.clock_error + follower.clock_error;
    if (was_before && (first == nullptr || left.time < first->time)) first = &left;
  }
  return first;
}

int failed_to_start_code(const Cause& cause) {
  if (cause.stage != v1::SPAWN_STAGE_EXEC) return static_cast<int>(ExitCode::kInfrastructure);
  return static_cast<int>(cause.value == ENOENT ? ExitCode::kNotFound : ExitCode::kNotExecutable);
}

}  // namespace

bool is_reader_gone(const Cause& cause) { return cause.value == 0 || cause.value == EPIPE; }

bool is_sent_by_somebody(int signal) {
  return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP ||
         signal == SIGQUIT;
}

bool is_of_rank(const Cause& cause) {
  return cause.kind == CauseKind::kExited || cause.kind == CauseKind::kSignalled ||
         cause.kind == CauseKind::kFailedToStart || cause.kind == CauseKind::kLeftEarly;
}

RankEnd rank_end(const v1::ExitReport& report, int stop_signal) {
  const bool is_exit = report.what_case() == v1::ExitReport::kExited;
  const bool is_clean = is_exit && report.exited() == 0;
  const bool has_saved = is_clean || (is_exit && report.exited() == 128 + stop_signal);
  if (report.stopped() && (report.signal_was_ours() || has_saved)) return RankEnd::kStopped;
  return is_clean ? RankEnd::kSucceeded : RankEnd::kFailed;
}

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
      cause.text = report.failed_to_start().detail();
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
  cause.mpi_end = report.mpi_end();
  cause.core_dumped = report.core_dumped();
  cause.core_pattern = report.core_pattern();
  cause.oom = report.oom();
  cause.oom_proof = oom_proof(report.oom());
  cause.signal_was_ours = report.signal_was_ours();
  cause.stopped = report.stopped();
  cause.time = time;
  cause.clock_error = clock_error;
  cause.error_file = report.error_file();
  cause.received_signal = received_signal_in(cause.error_file);
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
    case CauseKind::kLeftEarly:
    case CauseKind::kSignalled:
    case CauseKind::kFailedToStart:
    case CauseKind::kNodeLost:
    case CauseKind::kNodeStopped:
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
    case CauseKind::kLeftEarly:
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
    case CauseKind::kNodeStopped:
    case CauseKind::kExitTimeout:
      return static_cast<int>(ExitCode::kInfrastructure);
    case CauseKind::kStdoutGone:
      return static_cast<int>(is_reader_gone(*cause) ? ExitCode::kBrokenStdout
                                                     : ExitCode::kInfrastructure);
  }
  return static_cast<int>(ExitCode::kInfrastructure);
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
  const bool has_gone = cause.kind == CauseKind::kNodeLost || cause.kind == CauseKind::kNodeStopped;
  const std::uint32_t node = cause.node;
  candidates_.push_back(std::move(cause));
  if (has_gone) node_answered(node);
  return true;
}

void FirstCause::add_early_end(Cause cause) { early_ends_.push_back(std::move(cause)); }

void FirstCause::node_answered(std::uint32_t node) {
  if (is_open() && node < answered_.size()) answered_[node] = true;
}

bool FirstCause::has_followers_only() const {
  return std::all_of(candidates_.begin(), candidates_.end(), is_follower);
}

std::optional<Cause> FirstCause::likeliest() const {
  if (cause_) return cause_;
  if (candidates_.empty()) return std::nullopt;
  const Cause& best = choose(candidates_);
  const bool has_missed = is_follower(best) && best.value == kPeerLost;
  const Cause* left = has_missed ? first_to_leave(early_ends_, best) : nullptr;
  if (left == nullptr) return best;
  Cause cause = *left;
  cause.kind = CauseKind::kLeftEarly;
  cause.value = best.value;
  return cause;
}

bool FirstCause::is_waiting_for_another() const { return is_open() && has_followers_only(); }

bool FirstCause::is_settled() const {
  // Whom they follow may still be dying, unless it is known who left.
  if (has_followers_only() && likeliest()->kind != CauseKind::kLeftEarly) return false;
  return std::all_of(answered_.begin(), answered_.end(), [](bool answered) { return answered; });
}

bool FirstCause::decide(Nanos now) {
  if (is_open() && (is_settled() || now >= opened_ + settle_)) decide_at_once();
  return cause_.has_value();
}

void FirstCause::decide_at_once() {
  if (is_open()) cause_ = likeliest();
}

std::optional<Nanos> FirstCause::deadline() const {
  if (!is_open()) return std::nullopt;
  return opened_ + settle_;
}

}  // namespace hvd
