// How a job ends: stop the nodes, wait until each has ended or is given up, say what happened.
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "base/plural.h"
#include "launcher/job.h"
#include "launcher/report.h"

namespace hvd {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

// After grace, nodes verify and report survivors; then hvdrun leaves, whatever they say.
constexpr Nanos kLeaveAfterGrace = seconds(10);
constexpr Nanos kByeTime = seconds(2);
constexpr Nanos kFlushPatience = std::chrono::milliseconds(200);
constexpr Nanos kLastWordTime = std::chrono::milliseconds(100);

}  // namespace

void Job::stop_all(Nanos grace, const std::string& reason, bool is_broken) {
  stop_deadline_ = std::min(stop_deadline_, steady_clock::now() + grace + kLeaveAfterGrace);
  transports_.abort();
  v1::ControlRequest request;
  request.mutable_stop()->set_grace_ms(to_ms(grace));
  request.mutable_stop()->set_signal(options_.signals.stop_signal);
  request.mutable_stop()->set_reason(reason);
  request.mutable_stop()->set_abort(is_broken);
  for (const auto& node : nodes_) {
    if (!node->is_spawn_sent || node->is_ended()) continue;
    node->is_stop_sent = true;
    node->link->send(request);
  }
  send_store_replies(desk_.cancel_all("the job is ending"));
  send_store_replies(store_.cancel_all("the job is ending"));
}

bool Job::all_ended() const {
  return std::all_of(nodes_.begin(), nodes_.end(),
                     [](const auto& node) { return node->is_ended(); });
}

// Unlike all_ended(): their output may still be on its way.
bool Job::have_ranks_gone() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
    return !node->is_spawn_sent || node->is_lost || node->finished.has_value();
  });
}

Task<void> Job::wait_for_end() {
  while (!all_ended() && !is_leaving_now_) {
    if (steady_clock::now() >= stop_deadline_) break;
    co_await wait_for_change(std::min(stop_deadline_, settle_deadline()));
    settle();
  }
  first_cause_->decide_at_once();
  settle();
  move(JobEvent::kAllNodesEnded);
}

SteadyTime Job::settle_deadline() const {
  const auto deadline = first_cause_->deadline();
  if (!deadline) return SteadyTime::max();
  return steady_clock::now() + (*deadline - boottime_now());
}

// A reader of our output that has stalled keeps a good job waiting, but not one that is stopped.
Task<void> Job::finish_output() {
  if (lines_) {
    lines_->flush_all();
    submit_output({});
  }
  const SteadyTime deadline = std::max(stop_deadline_, steady_clock::now());
  co_await flush_until(deadline);
}

// Looks up now and then, because the user may lose patience.
Task<void> Job::flush_until(SteadyTime deadline) {
  while (!is_leaving_now_ && steady_clock::now() < deadline) {
    const SteadyTime until = std::min(deadline, steady_clock::now() + kFlushPatience);
    const bool is_written = co_await writer_.flush(until);
    const bool is_filed = co_await flush_files(until);
    if (is_written && is_filed) co_return;
  }
}

// The agents leave at once and remove what they kept for us; their streams end when they have.
Task<void> Job::say_bye() {
  v1::ControlRequest request;
  request.mutable_bye();
  for (const auto& node : nodes_) {
    node->is_bye_sent = true;
    if (!node->link || node->is_link_closed) continue;
    // An agent that hears no goodbye leaves the timelines where they are.
    if (node->timeline && !node->timeline->problem.empty()) {
      node->link->close();
    } else {
      node->link->send(request);
    }
  }
  const auto is_closed = [](const auto& node) { return !node->link || node->is_link_closed; };
  const SteadyTime deadline =
      is_leaving_now_ ? steady_clock::now() : steady_clock::now() + kByeTime;
  while (!std::all_of(nodes_.begin(), nodes_.end(), is_closed)) {
    if (steady_clock::now() >= deadline) break;
    co_await wait_for_change(deadline);
  }
  for (const auto& node : nodes_) {
    if (node->link && !node->is_link_closed) node->link->close();
  }
}

ReportInput Job::report_input(const Cause& cause) const {
  ReportInput input;
  input.cause = cause;
  input.clock = job_clock();
  input.job_id = job_id_;
  input.num_stopped = num_stopped_;
  input.stood_still = stood_still_;
  if (is_of_rank(cause) && tail_) input.tail = tail_->lines(cause.rank);
  const bool is_counted = is_of_rank(cause) && cause.kind != CauseKind::kLeftEarly;
  input.num_failed_after = num_failed_ - (is_counted && num_failed_ > 0 ? 1 : 0);
  for (const auto& node : nodes_) {
    for (std::string& line : node->kernel.lines()) {
      if (cause.oom_proof.find(line) != std::string::npos) continue;  // stands in the sentence
      input.kernel_log.push_back({node->host.label(), std::move(line)});
    }
  }
  add_node_ends(input);
  return input;
}

// The last words get their time, but a stderr that nobody reads keeps nobody waiting for ever.
Task<void> Job::flush_report() {
  const SteadyTime least = steady_clock::now() + kByeTime;
  const bool has_failed = first_cause_->cause() != nullptr;
  co_await flush_until(has_failed
                           ? std::max(least, std::min(stop_deadline_, least + kLeaveAfterGrace))
                           : SteadyTime::max());
  co_await writer_.flush(steady_clock::now() + kLastWordTime);
  if (events_) (void)co_await events_->flush(steady_clock::now() + kByeTime);
}

JobClock Job::job_clock() const {
  return {.start = spawn_boottime_, .realtime_offset = realtime_now() - boottime_now()};
}

// With what the kernel of its node has said since.
std::optional<Cause> Job::proved_cause() const {
  if (first_cause_->cause() == nullptr) return std::nullopt;
  Cause cause = *first_cause_->cause();
  if (is_of_rank(cause) && cause.node < nodes_.size()) {
    add_evidence(cause, nodes_.at(cause.node)->kernel);
  }
  return cause;
}

int Job::conclude() {
  first_cause_->decide_at_once();  // a signal while only output was left
  const auto cause = proved_cause();
  const int code = exit_code(cause ? &*cause : nullptr);
  if (spawn_boottime_ != Nanos::zero()) {
    log(LogLevel::kInfo, "{} on {} ended after {}", counted(plan_->ranks.size(), "rank"),
        counted(planned_nodes().size(), "host"),
        format_duration(steady_clock::now() - start_time_));
  }
  ReportInput report;
  if (cause) {
    report = report_input(*cause);
    const auto next = on_failed_ ? on_failed_(attempt_end(*cause)) : Restarts::Decision{};
    if (next.is_on) signals_.stop();
    if (!next.told.empty()) report.node_lines.push_back(next.told);
    if (cause->kind == CauseKind::kUserSignal && cause->value != SIGQUIT) {
      fatal_signal_ = cause->value;
    }
  } else {
    report.job_id = job_id_;
    add_node_ends(report);
  }
  // First, because the cause is the last line, also where the records cannot be written.
  write_records(code, cause, report);
  writer_.submit(
      {{.is_stderr = true, .bytes = cause ? report_text(report) : node_ends_text(report)}}, {});
  return code;
}

AttemptEnd Job::attempt_end(const Cause& cause) const {
  AttemptEnd end;
  end.hosts = options_.hosts;
  // What comes while the failed attempt is being stopped means the next one, too.
  const bool is_time_up = time_limit_ && steady_clock::now() >= *time_limit_;
  end.is_retryable = !is_leaving_now_ && stop_wishes_.count() == 0 && !is_time_up &&
                     !has_told_time_limit_ &&
                     is_retryable(cause, !earlier_.empty(), !options_.restarts.spares.empty());
  end.has_not_started =
      cause.kind == CauseKind::kStartFailed || cause.kind == CauseKind::kStartTimeout;
  end.sentence = sentence(cause, job_clock());
  if (plan_) end.num_ranks = static_cast<std::uint32_t>(plan_->ranks.size());
  if (cause.node != kNoNode) end.failed.insert(cause.host);
  for (const auto& node : nodes_) {
    HostSpec& host = end.hosts.at(node->index);
    if (!host.slots && node->hello) host.slots = std::max(node->hello->num_gpus(), 1U);
    if (node->error) end.failed.insert(host.label());
    const v1::Finished* finished = node->end();
    const bool is_clean = finished != nullptr && finished->clean();
    if (node->is_spawn_sent && !is_clean) end.unverified.insert(host.label());
  }
  return end;
}

}  // namespace hvd
