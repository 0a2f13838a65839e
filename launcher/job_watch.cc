// The workers of the runtime: their registrations, their heartbeats, what they are told.
#include <sstream>

#include "base/log.h"
#include "launcher/job.h"

namespace hvd {
namespace {

using std::chrono::steady_clock;

constexpr Nanos kInspectPeriod = std::chrono::milliseconds(250);

}  // namespace

// As soon as the ranks have their nodes.
void Job::prepare_watch() {
  std::vector<std::string> hosts(plan_->ranks.size());
  for (const auto& node : nodes_) {
    for (const std::uint32_t rank : node->ranks) hosts.at(rank) = node->host.label();
  }
  desk_.set_hosts(hosts);
  desk_.set_processes([this](std::uint32_t rank) { return process_text(rank); });
  if (const auto limit = options_.watch.stall_timeout) silence_.emplace(*limit, hosts);
  stall_settings_ = stall_settings(environment_, options_.env);
  stall_.emplace(stall_settings_, std::move(hosts));
}

// Only where workers use the runtime, or with --stall-timeout, is there anything to watch.
void Job::begin_watch() {
  if (std::exchange(is_watching_, true)) return;
  for (const std::string& text : stall_settings_.warnings) log(LogLevel::kWarning, "{}", text);
  boost::asio::co_spawn(loop_, keep_watch(), boost::asio::detached);
}

Task<void> Job::keep_watch() {
  while (true) {
    const bool is_over = co_await ended_.wait_until(steady_clock::now() + kInspectPeriod);
    if (is_over) co_return;
    if (is_stopping() || hung_cause_) continue;
    report_stall(stall_->inspect(boottime_now()));
    if (auto silence = silence_ ? silence_->inspect(boottime_now()) : std::nullopt) {
      report_silence(std::move(*silence));
    }
  }
}

void Job::on_registration(Node& node, const v1::StoreRequest& request) {
  begin_watch();
  const v1::Registration& rank = request.registration().registration();
  log(LogLevel::kDebug, "{}: rank {} (pid {}): NCCL {}, open files {} (hard {})", node.host.label(),
      rank.rank(), rank.pid(), rank.nccl_version().empty() ? "none" : rank.nccl_version(),
      rank.nofile_soft(), rank.nofile_hard());
  send_store_replies(
      desk_.take(node.index, request.id(), request.registration(), steady_clock::now()));
  settle_registration();
}

// What the desk has decided is told here, once for all ranks.
void Job::settle_registration() {
  auto outcome = desk_.take_outcome();
  if (!outcome) return;
  for (const std::string& warning : outcome->warnings) {
    std::istringstream lines(warning);
    for (std::string line; std::getline(lines, line);) log(LogLevel::kWarning, "{}", line);
  }
  if (!outcome->refusal) {
    const auto left = *desk_.start_deadline() - steady_clock::now();
    return stall_->expect_running_by(boottime_now() + left);
  }
  Cause cause;
  cause.kind = CauseKind::kRegistration;
  cause.code = outcome->is_timeout ? ExitCode::kTimeout : kMismatchCode;
  cause.text = std::move(outcome->refusal->headline);
  cause.details = std::move(outcome->refusal->table);
  cause.time = boottime_now();
  add_cause(std::move(cause));
}

void Job::on_worker_beats(const v1::WorkerBeats& beats) {
  begin_watch();
  const Nanos now = boottime_now();
  for (const v1::WorkerBeat& beat : beats.beats()) {
    phases_[beat.rank()] = beat.phase();
    stall_->take(beat, now);
    if (silence_) silence_->take(beat, now);
  }
}

void Job::on_rank_succeeded(std::uint32_t rank) {
  stall_->rank_ended(rank, "ended with code 0");
  send_store_replies(desk_.rank_ended(rank, "ended with code 0"));
  settle_registration();
}

void Job::report_stall(StallInspector::Findings findings) {
  for (const std::string& warning : findings.warnings) log(LogLevel::kWarning, "{}", warning);
  if (findings.dump) notify_workers(v1::WorkerNotice::KIND_DUMP, *findings.dump);
  if (!findings.stall) return;
  Cause cause;
  cause.kind = CauseKind::kStalled;
  cause.code = kStalledCode;
  cause.rank = findings.stall->rank;
  cause.text = std::move(findings.stall->text);
  cause.time = boottime_now();
  end_hung(std::move(cause), {findings.stall->rank});
}

void Job::notify_workers(v1::WorkerNotice::Kind kind, const std::string& reason) {
  v1::ControlRequest request;
  request.mutable_worker_notice()->set_kind(kind);
  request.mutable_worker_notice()->set_reason(reason);
  for (const auto& node : nodes_) {
    if (!node->is_spawn_sent || node->is_ended() || node->is_link_closed) continue;
    node->link->send(request);
  }
}

}  // namespace hvd
