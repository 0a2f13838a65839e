// Ranks that hang: whether a rank gives signs of life, what can be learnt of the ranks before they
// are stopped, and what the nodes tell of their GPUs.
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "base/process_state.h"
#include "launcher/job.h"
#include "launcher/shell_words.h"
#include "launcher/watch_records.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// Of all ranks of a node: twice what one may take.
constexpr int kHookRounds = 2;
constexpr Nanos kAnswerTime = seconds(1);  // beyond, for the way
constexpr Nanos kLookPeriod = milliseconds(50);
constexpr Nanos kLeastGpuPeriod = seconds(10);  // between two lines

}  // namespace

void Job::on_vitals(const Node& node, const v1::VitalSigns& signs) {
  note_states(node, signs.ranks());
  if (!silence_) return;
  begin_watch();
  silence_->take(signs, boottime_now());
}

// With each heartbeat.
void Job::note_states(const Node& node, const RankStates& ranks) {
  for (const v1::RankVitals& vitals : ranks) {
    const bool is_its_own = std::binary_search(node.ranks.begin(), node.ranks.end(), vitals.rank());
    if (is_its_own) states_[vitals.rank()] = vitals;
  }
}

// "pid 4711, sleeping (S)"; empty: nothing is known of it.
std::string Job::process_text(std::uint32_t rank) const {
  const auto found = states_.find(rank);
  if (found == states_.end()) return "";
  const std::string state = process_state_text(found->second.state());
  return fmt::format("pid {}{}{}", found->second.pid(), state.empty() ? "" : ", ", state);
}

void Job::report_silence(SilenceWatch::Silence silence) {
  Cause cause;
  cause.kind = CauseKind::kStalled;
  cause.code = ExitCode::kTimeout;
  cause.rank = silence.rank;
  cause.pid = silence.pid;
  cause.text = std::move(silence.text);
  cause.time = boottime_now();
  std::stable_partition(silence.ranks.begin(), silence.ranks.end(),
                        [&](std::uint32_t rank) { return rank == silence.rank; });
  end_hung(std::move(cause), std::move(silence.ranks));
}

// Where the rank to blame runs.
void Job::name_place(Cause& cause) const {
  if (cause.kind != CauseKind::kStalled) return;
  if (const Node* node = node_of(cause.rank)) cause.host = node->host.label();
  const auto state = states_.find(cause.rank);
  if (state != states_.end()) cause.pid = state->second.pid();
}

// `hung`: the ranks to show first. The cause counts from now on; it ends the job when the nodes
// have told what they find, or at the limit.
void Job::end_hung(Cause cause, std::vector<std::uint32_t> hung) {
  if (is_stopping() || hung_cause_) return;
  evidence_view_.first = std::move(hung);
  evidence_view_.command = options_.watch.hook.empty() ? "" : quote_words(options_.watch.hook);
  evidence_view_.shows_others = !options_.watch.hook.empty();
  evidence_view_.has_report = !options_.records.report.empty();
  hung_cause_ = std::move(cause);
  name_place(*hung_cause_);
  emit("stall", stall_json(*hung_cause_, evidence_view_.first));
  boost::asio::co_spawn(loop_, collect_evidence(), boost::asio::detached);
}

Task<void> Job::collect_evidence() {
  const Nanos total = kHookRounds * options_.watch.hook_limit;
  for (const auto& node : nodes_) {
    if (node->is_spawn_sent && !node->is_ended() && !node->is_link_closed) ask_evidence(*node);
  }
  const SteadyTime deadline = steady_clock::now() + total + kAnswerTime;
  const auto is_due = [](const auto& node) {
    return node->is_evidence_due && !node->is_ended() && !node->is_link_closed;
  };
  while (!is_stopping() && std::any_of(nodes_.begin(), nodes_.end(), is_due)) {
    const SteadyTime now = steady_clock::now();
    if (now >= deadline) break;
    const bool is_over = co_await ended_.wait_until(std::min(deadline, now + kLookPeriod));
    if (is_over) co_return;
  }
  show_evidence();
  end_for_hung_cause();
}

void Job::ask_evidence(Node& node) {
  v1::ControlRequest request;
  v1::CollectEvidence& collect = *request.mutable_collect_evidence();
  collect.set_limit_ms(to_ms(options_.watch.hook_limit));
  collect.set_total_ms(to_ms(kHookRounds * options_.watch.hook_limit));
  for (const std::uint32_t rank : node.ranks) {
    v1::CollectEvidence::Target& target = *collect.add_targets();
    target.set_rank(rank);
    for (std::string& word : hook_words(options_.watch.hook, rank, node.host.label())) {
      target.add_words(std::move(word));
    }
  }
  node.is_evidence_due = true;
  node.link->send(std::move(request));
}

void Job::on_evidence(Node& node, v1::Evidence evidence) {
  for (v1::RankEvidence& rank : *evidence.mutable_ranks()) {
    log(LogLevel::kDebug, "{}: {} bytes about rank {}", node.host.label(), rank.text().size(),
        rank.rank());
    evidence_.push_back({node.host.label(), std::move(rank)});
  }
  if (evidence.done()) node.is_evidence_due = false;
}

// Once, before the report: a job may be over before collect_evidence() looks again.
void Job::show_evidence() {
  if (std::exchange(is_evidence_shown_, true)) return;
  std::string text = evidence_text(evidence_, evidence_view_);
  if (!text.empty()) writer_.submit({{.is_stderr = true, .bytes = std::move(text)}}, {});
  report_sections_["stall"] =
      json_text(stall_json(*hung_cause_, evidence_view_.first, evidence_view_.command, evidence_));
  file_evidence();
}

// Where a rank's output is kept, what was found of it stands behind its last words.
void Job::file_evidence() {
  if (!rank_files_) return;
  std::vector<RankBytes> pieces;
  for (const RankEvidence& one : evidence_) {
    const EvidenceView view{.first = {one.found.rank()}, .command = evidence_view_.command};
    pieces.push_back({one.found.rank(), true, evidence_text({one}, view)});
  }
  rank_files_->submit(std::move(pieces), {});
}

void Job::end_for_hung_cause() {
  if (!hung_cause_ || std::exchange(is_hung_cause_told_, true)) return;
  add_cause(*hung_cause_);
}

Task<void> Job::keep_gpu_lines() {
  const bool is_told = is_logged(LogLevel::kInfo) || ::isatty(STDERR_FILENO) == 1;
  SteadyTime next_line = steady_clock::now();
  while (true) {
    const SteadyTime next = steady_clock::now() + *options_.watch.gpu_period;
    const bool is_over = co_await ended_.wait_until(next);
    if (is_over) co_return;
    if (state_ != JobState::kRunning || gpus_.is_empty()) continue;
    emit("gpu_stats", gpu_now_json(gpus_));
    if (!is_told || steady_clock::now() < next_line) continue;
    next_line = steady_clock::now() + kLeastGpuPeriod;
    write_log(LogLevel::kInfo, gpus_.text_now());
  }
}

void Job::tell_gpus() {
  const std::string text = gpus_.text_over_run();
  if (text.empty()) return;
  write_log(LogLevel::kInfo, "over the run, " + text);
  report_sections_["gpu"] = json_text(gpu_run_json(gpus_));
}

}  // namespace hvd
