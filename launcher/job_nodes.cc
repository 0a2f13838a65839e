// What the nodes report while the job lives.
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "launcher/job.h"
#include "launcher/loss_text.h"

namespace hvd {
namespace {

constexpr std::size_t kMaxDiagnostics = 400;

// The last words of the other side, on one line.
std::string last_words(const Connection* connection) {
  std::string text = connection != nullptr ? connection->diagnostics() : "";
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.size() > kMaxDiagnostics) text.erase(0, text.size() - kMaxDiagnostics);
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text.empty() ? "" : fmt::format(" (it said: {})", text);
}

}  // namespace

void Job::on_reply(Node& node, v1::ControlReply reply) {
  node.last_heard = boottime_now();
  switch (reply.message_case()) {
    case v1::ControlReply::kHello:
      return on_hello(node, std::move(*reply.mutable_hello()));
    case v1::ControlReply::kFabricProbe:
      node.probe = std::move(*reply.mutable_fabric_probe());
      return changed();
    case v1::ControlReply::kStarted:
      return on_started(node, reply.started());
    case v1::ControlReply::kExited:
      return on_exit(node, reply.exited());
    case v1::ControlReply::kFinished:
      return on_finished(node, std::move(*reply.mutable_finished()));
    case v1::ControlReply::kHeartbeat:
      return on_heartbeat(node, reply.heartbeat());
    case v1::ControlReply::kStoreRequest:
      return on_store(node, reply.store_request());
    case v1::ControlReply::kWorkerBeats:
      return on_worker_beats(reply.worker_beats());
    case v1::ControlReply::kVitalSigns:
      return on_vitals(node, reply.vital_signs());
    case v1::ControlReply::kEvidence:
      return on_evidence(node, std::move(*reply.mutable_evidence()));
    case v1::ControlReply::kSignalled:
      return on_signalled(reply.signalled());
    case v1::ControlReply::kInput:
      return on_input_state(reply.input());
    case v1::ControlReply::kKernelFacts:
      return node.kernel.take(reply.kernel_facts());
    case v1::ControlReply::kNotice:
      // What comes before is of the node and not of the job.
      if (reply.notice().warning() && node.is_spawn_sent) node.last_notice = reply.notice().text();
      return log(reply.notice().warning() ? LogLevel::kWarning : LogLevel::kInfo, "{}: {}",
                 node.host.label(), reply.notice().text());
    case v1::ControlReply::kFabricListen:
    case v1::ControlReply::MESSAGE_NOT_SET:
      return;
  }
}

void Job::on_hello(Node& node, v1::HelloReply reply) {
  const Nanos now = boottime_now();
  node.clock.add(node.hello_sent, Nanos(reply.boottime_ns()), now);
  // The node's wall clock against ours in the middle of the round trip.
  node.realtime_offset =
      Nanos(reply.realtime_ns()) - (realtime_now() - (now - node.hello_sent) / 2);
  node.kernel.begin(reply.kernel_log_problem());
  node.hello = std::move(reply);
  if (stage_ == nullptr) node.phases.enter(Phase::kFabric, now);
  changed();
}

void Job::on_started(Node& node, const v1::Started& started) {
  note_start(node, started);
  if (options_.env_request.reports_bindings) {
    print_own(fmt::format("hvdrun: rank {} ({}): {}", started.rank(), node.host.label(),
                          started.binding()));
  }
  if (++node.num_started + node.num_exited >= node.ranks.size())
    node.phases.enter(Phase::kRunning, boottime_now());
  changed();
}

void Job::on_exit(Node& node, const v1::ExitReport& report) {
  ++node.num_exited;
  states_[report.rank()].set_pid(report.pid());
  states_[report.rank()].clear_state();
  if (silence_) silence_->rank_ended(report.rank());
  const auto at = node.clock.to_launcher(Nanos(report.time_ns()), boottime_now());
  auto cause = cause_of(report, node.index, node.host.label(), at.time, at.error);
  log(LogLevel::kDebug, "{}: rank {} ended{}", node.host.label(), report.rank(),
      cause ? fmt::format(": {}", sentence(*cause, job_clock())) : " with 0");
  note_end(node, report, at.time);
  const RankEnd end = rank_end(report, options_.signals.stop_signal);
  if (end == RankEnd::kStopped) ++num_stopped_;
  if (end == RankEnd::kFailed) ++num_failed_;
  if (report.stood_still()) {
    stood_still_.push_back({report.rank(), node.host.label(), report.pid()});
  }
  if (cause) {
    cause->uses_runtime = phases_.contains(report.rank());
    explain(*cause, report);
    add_cause(std::move(*cause));
  } else {
    on_success(node, report, at);
  }
  changed();
}

void Job::on_success(Node& node, const v1::ExitReport& report, const ClockOffset::Mapped& at) {
  ++node.num_succeeded;
  on_rank_succeeded(report.rank());
  if (is_stopping()) return;
  watch_exit_timeout();
  std::size_t num_running = 0;
  for (const auto& other : nodes_) num_running += other->ranks.size() - other->num_exited;
  if (num_running > 0 && !std::exchange(has_told_first_end_, true)) {
    log(LogLevel::kInfo, "rank {} ({}) ended with 0, waiting for {} more", report.rank(),
        node.host.label(), num_running);
  }
  // A worker of the runtime that has said that it is finished is missed by nobody.
  const auto phase = phases_.find(report.rank());
  if (phase == phases_.end() || phase->second == "finalizing") return;
  Cause left;
  left.kind = CauseKind::kLeftEarly;
  left.rank = report.rank();
  left.node = node.index;
  left.host = node.host.label();
  left.pid = report.pid();
  left.time = at.time;
  left.clock_error = at.error;
  first_cause_->add_early_end(std::move(left));
  settle();
}

void Job::on_finished(Node& node, v1::Finished finished) {
  log(LogLevel::kDebug, "{}: finished, {}", node.host.label(),
      finished.clean() ? "clean" : "with survivors");
  node.finished = std::move(finished);
  // Ranks that the node stopped by itself, because it had not heard us for the lease, are no
  // failure of theirs; but the job is not done.
  if (!node.finished->stopped_by().empty() && !node.is_stop_sent) {
    add_node_cause(CauseKind::kNodeStopped, node, node.finished->stopped_by());
  } else if (!node.is_stop_sent && node.num_succeeded < node.ranks.size() &&
             !first_cause_->is_open()) {
    add_lost_cause(node, "it stopped its ranks by itself" +
                             (node.last_notice.empty() ? "" : ": " + node.last_notice));
  }
  first_cause_->node_answered(node.index);
  settle();
  changed();
}

void Job::on_heartbeat(Node& node, const v1::Heartbeat& heartbeat) {
  note_states(node, heartbeat.ranks());
  gpus_.take(node.index, node.host.label(), heartbeat.gpus());
  node.clock.add(Nanos(heartbeat.launcher_boottime_ns()), Nanos(heartbeat.agent_boottime_ns()),
                 boottime_now());
  if (first_cause_->is_open() && heartbeat.sequence() >= settle_sequence_) {
    first_cause_->node_answered(node.index);
    settle();
    changed();
  }
}

void Job::on_store(Node& node, const v1::StoreRequest& request) {
  if (request.has_registration()) return on_registration(node, request);
  if (request.has_fence()) {
    return send_store_replies(pmi_fence_.take(node.index, request.id(), request.fence()));
  }
  if (request.op_case() == v1::StoreRequest::kCancel) desk_.cancel(node.index, request.cancel());
  send_store_replies(store_.handle(node.index, request, std::chrono::steady_clock::now()));
}

void Job::send_store_replies(const StoreAnswers& answers) {
  for (const StoreAnswer& answer : answers) {
    Node& node = *nodes_.at(answer.node);
    if (!node.link || node.is_link_closed) continue;
    v1::ControlRequest request;
    *request.mutable_store_reply() = answer.reply;
    node.link->send(std::move(request));
  }
  arm_store_timer();
}

void Job::arm_store_timer() {
  const SteadyTime deadline = std::min(store_.next_deadline().value_or(SteadyTime::max()),
                                       desk_.next_deadline().value_or(SteadyTime::max()));
  if (deadline == SteadyTime::max()) return void(store_timer_.cancel());
  store_timer_.expires_at(deadline);
  store_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    const SteadyTime now = std::chrono::steady_clock::now();
    send_store_replies(desk_.expire(now));
    send_store_replies(store_.expire(now));
    settle_registration();
  });
}

void Job::on_output(Node& node, const v1::OutputReply& output) {
  if (output.files_size() > 0 || output.files_done()) on_files(node, output);
  const SteadyTime now = std::chrono::steady_clock::now();
  std::uint64_t num_bytes = 0;
  for (const v1::LogChunk& chunk : output.chunks()) {
    num_bytes += chunk.data().size();
    lines_->add(chunk, now);
    if (chunk.stream() == v1::STREAM_STDERR) tail_->add(chunk.rank(), chunk.data());
    if (chunk.eof() && node.num_open_streams > 0) --node.num_open_streams;
  }
  submit_output(also_to_files(output, [this, &node, num_bytes] {
    if (num_bytes > 0 && node.link && !node.is_link_closed) node.link->grant(num_bytes);
  }));
  if (node.num_open_streams == 0) changed();
}

// `on_written` may be empty: nobody waits for these bytes.
void Job::submit_output(std::function<void()> on_written) {
  writer_.submit(lines_->take(), std::move(on_written));
  arm_idle_timer();
}

// An unfinished line is shown after some idle time.
void Job::arm_idle_timer() {
  const auto deadline = lines_->next_deadline();
  if (deadline && deadline != idle_timer_.expiry()) wait_for_idle(*deadline);
}

void Job::wait_for_idle(SteadyTime deadline) {
  idle_timer_.expires_at(deadline);
  idle_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    const SteadyTime now = std::chrono::steady_clock::now();
    // While our own reader is behind, the rest of a line may only be waiting for its credit.
    if (writer_.num_queued() > 0) return wait_for_idle(now + LineAssembler::kIdle);
    idle_timer_.expires_at(SteadyTime::max());
    lines_->flush_idle(now);
    submit_output({});
  });
}

void Job::on_output_closed(Node& node) {
  node.num_open_streams = 0;
  if (node.timeline && !std::exchange(node.timeline->is_over, true)) {
    node.timeline->problem = "the connection was lost";
  }
  changed();
}

void Job::on_link_closed(Node& node, const std::string& why) {
  node.is_link_closed = true;
  node.num_open_streams = 0;
  if (!node.is_reached() && !node.is_bye_sent) {
    // A refusal at the hello: told together with the other nodes' errors.
    node.error = Error{why + last_words(node.connection.get())};
  } else if (!node.is_bye_sent) {
    const Nanos silence = boottime_now() - node.last_heard;
    lose(node,
         connection_end_text(why, silence, options_.heartbeat) + last_words(node.connection.get()));
  }
  changed();
}

void Job::lose(Node& node, const std::string& why) {
  if (node.is_lost) return;
  node.is_lost = true;
  emit("lease", {{"host", node.host.label()}, {"state", "lost"}, {"why", why}});
  first_cause_->node_answered(node.index);
  store_.forget_node(node.index);
  desk_.forget_node(node.index);
  // A node that had nothing to run any more is no failure of the job.
  if (!node.finished) add_lost_cause(node, why);
  reap_lost(node);
  if (node.link) node.link->close();
  changed();
}

void Job::add_lost_cause(const Node& node, std::string why) {
  add_node_cause(CauseKind::kNodeLost, node, std::move(why));
}

void Job::add_node_cause(CauseKind kind, const Node& node, std::string why) {
  Cause cause;
  cause.kind = kind;
  cause.node = node.index;
  cause.host = node.host.label();
  cause.time = boottime_now();
  cause.text = std::move(why);
  add_cause(std::move(cause));
}

void Job::watch_exit_timeout() {
  if (!options_.exit_timeout || has_exit_timer_) return;
  has_exit_timer_ = true;
  boost::asio::co_spawn(loop_, keep_exit_timeout(), boost::asio::detached);
}

Task<void> Job::keep_exit_timeout() {
  const bool is_over =
      co_await ended_.wait_until(std::chrono::steady_clock::now() + *options_.exit_timeout);
  if (is_over) co_return;
  std::size_t num_running = 0;
  for (const auto& node : nodes_) num_running += node->ranks.size() - node->num_exited;
  if (num_running == 0) co_return;
  add_own_cause(
      CauseKind::kExitTimeout, *options_.exit_timeout,
      fmt::format("{} still running",
                  num_running == 1 ? "1 rank was" : fmt::format("{} ranks were", num_running)));
}

}  // namespace hvd
