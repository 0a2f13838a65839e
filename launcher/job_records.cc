// The run told to programs: --events as it happens, --report at the end.
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "launcher/job.h"
#include "launcher/watch_records.h"

namespace hvd {
namespace {

using nlohmann::ordered_json;

RankState state_of(const v1::ExitReport& report, int stop_signal) {
  if (report.has_failed_to_start()) return RankState::kFailedToStart;
  switch (rank_end(report, stop_signal)) {
    case RankEnd::kSucceeded:
      return RankState::kSucceeded;
    case RankEnd::kStopped:
      return RankState::kStopped;
    case RankEnd::kFailed:
      return RankState::kFailed;
  }
  return RankState::kFailed;
}

}  // namespace

void Job::open_events(int fd) {
  if (options_.records.events.empty()) return;
  if (fd >= 0) {
    events_ = std::make_unique<EventLog>(loop_, fd);
  } else {
    events_ =
        std::make_unique<EventLog>([this](std::string line) { print_record(std::move(line)); });
  }
}

// On the standard output whole, wherever a rank's line may just stand.
void Job::print_record(std::string text) {
  if (lines_) submit_output({});
  writer_.submit({{.is_stderr = false, .bytes = std::move(text)}}, {});
}

// How the attempts before this one ended.
void Job::record_earlier_attempts() {
  if (options_.restarts.most == 0) return;
  emit("attempt", {{"restart_count", earlier_.size()}, {"max_restarts", options_.restarts.most}});
  report_sections_["restarts"] = json_text({{"restart_count", earlier_.size()},
                                            {"max_restarts", options_.restarts.most},
                                            {"earlier_attempts", earlier_}});
}

void Job::emit(std::string_view event, const ordered_json& fields) {
  if (events_) events_->emit(event, fields);
}

void Job::prepare_records() {
  rank_facts_.resize(plan_->ranks.size());
  for (const auto& node : nodes_) {
    for (const std::uint32_t rank : node->ranks) rank_facts_.at(rank).host = node->host.label();
  }
}

void Job::note_spawn(const Node& node) {
  emit("spawn", {{"host", node.host.label()}, {"ranks", node.ranks}});
}

void Job::note_start(const Node& node, const v1::Started& started) {
  if (started.rank() >= rank_facts_.size()) return;
  RankFacts& facts = rank_facts_[started.rank()];
  facts.pid = started.pid();
  facts.state = RankState::kRunning;
  facts.started = boottime_now();
  emit("rank_start",
       {{"rank", started.rank()}, {"host", node.host.label()}, {"pid", started.pid()}});
}

void Job::note_end(const Node& node, const v1::ExitReport& report, Nanos time) {
  if (report.rank() >= rank_facts_.size()) return;
  RankFacts& facts = rank_facts_[report.rank()];
  facts.pid = report.pid();
  facts.state = state_of(report, options_.signals.stop_signal);
  if (report.what_case() == v1::ExitReport::kExited) facts.code = report.exited();
  if (report.what_case() == v1::ExitReport::kSignalled) facts.signal = report.signalled();
  facts.ended = time;
  // When a rank started is only known by when it was heard of.
  if (facts.started) facts.started = std::min(*facts.started, time);
  emit("rank_exit",
       {{"rank", report.rank()},
        {"host", node.host.label()},
        {"pid", report.pid()},
        {"state", state_name(facts.state)},
        {"code", facts.code ? ordered_json(*facts.code) : ordered_json(nullptr)},
        {"signal", facts.signal ? ordered_json(signal_name(*facts.signal)) : ordered_json(nullptr)},
        {"ended", utc_text(time + job_clock().realtime_offset)}});
}

NodeFacts Job::node_facts(const Node& node) {
  NodeFacts facts;
  facts.host = node.host.label();
  facts.is_spawned = node.is_spawn_sent;
  if (node.hello) {
    facts.agent_version = node.hello->agent_version();
    facts.layer = node.hello->containment();
  }
  facts.layer.erase(std::min(facts.layer.find(' '), facts.layer.size()));
  facts.kernel_log = node.kernel.lines();
  const v1::Finished* end = node.end();
  facts.why_unverified = end == nullptr ? node.unverified : "";
  if (end == nullptr) return facts;
  facts.is_verified = end->clean();
  facts.remains = {end->remains().begin(), end->remains().end()};
  facts.survivors = {end->survivors().begin(), end->survivors().end()};
  return facts;
}

RunFacts Job::run_facts(int code, const std::optional<Cause>& cause,
                        const ReportInput& told) const {
  RunFacts facts;
  facts.job_id = job_id_;
  facts.command = options_.command;
  facts.begun = start_boottime_;
  facts.ended = boottime_now();
  facts.clock = job_clock();
  facts.code = code;
  facts.cause = cause;
  facts.num_stopped = num_stopped_;
  facts.last_lines = told.tail;
  facts.num_failed_after = told.num_failed_after;
  facts.ranks = rank_facts_;
  for (const auto& node : nodes_) facts.nodes.push_back(node_facts(*node));
  facts.sections = report_sections_;
  return facts;
}

void Job::write_records(int code, const std::optional<Cause>& cause, const ReportInput& told) {
  emit("end",
       {{"exit_code", code},
        {"reason", cause ? class_name(cause->kind) : "success"},
        {"sentence", cause ? ordered_json(sentence(*cause, job_clock())) : ordered_json(nullptr)}});
  const std::string& path = options_.records.report;
  if (path.empty()) return;
  std::string text = report_json(run_facts(code, cause, told));
  if (path == kStdoutName) return print_record(std::move(text));
  const auto written = write_report(path, text);
  if (!written) write_log(LogLevel::kWarning, written.error().message);
}

}  // namespace hvd
