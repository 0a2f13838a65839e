// --stage: the files go to every node at once, before anything is judged by what is there. Each
// node says what it needs; one piece for each is on its way.
#include "base/log.h"
#include "base/plural.h"
#include "launcher/job.h"

namespace hvd {
namespace {

using std::chrono::steady_clock;

std::string bytes_text(std::uint64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace

// False: a cause stands.
Task<bool> Job::stage_files() {
  if (stage_ == nullptr) co_return true;
  const SteadyTime begun = steady_clock::now();
  for (const auto& node : nodes_) begin_stage(*node);
  while (!is_stopping() && !are_all_staged()) {
    if (steady_clock::now() >= start_deadline_) {
      add_own_cause(CauseKind::kStartTimeout, options_.start_timeout, pending_text(progress()));
      break;
    }
    co_await wait_for_change(start_deadline_);
  }
  if (is_stopping()) co_return false;
  std::vector<NodeFailure> failures;
  std::uint64_t num_sent = 0;
  for (const auto& node : nodes_) {
    if (node->error) failures.push_back({node->host.label(), *node->error});
    num_sent += node->stage->num_bytes_sent();
  }
  if (!failures.empty()) {
    add_cause(start_failure(failures, boottime_now()));
    co_return false;
  }
  log(LogLevel::kInfo, "staged {} ({}) on {} in {}, {} of it sent",
      counted(stage_->num_files, "file"), bytes_text(stage_->num_bytes),
      counted(nodes_.size(), "host"), format_duration(steady_clock::now() - begun),
      bytes_text(num_sent));
  co_return true;
}

void Job::begin_stage(Node& node) {
  node.phases.enter(Phase::kStage, boottime_now());
  node.stage.emplace(*stage_);
  for (v1::StageRequest& request : entry_requests(*stage_)) {
    node.link->send_stage(std::move(request));
  }
}

void Job::on_stage(Node& node, const v1::StageReply& reply) {
  if (node.error || node.staged) return;
  if (reply.has_need()) {
    if (const auto needed = node.stage->need(reply.need()); !needed) {
      return fail_stage(node, needed.error().message);
    }
    return send_staged(node);
  }
  if (!reply.has_done()) return;
  if (!reply.done().error().empty()) return fail_stage(node, reply.done().error());
  node.staged = reply.done();
  node.hello->set_executable(node.staged->executable());
  node.hello->set_executable_errno(node.staged->executable_errno());
  node.phases.enter(Phase::kFabric, boottime_now());
  changed();
}

// The next piece once the last one is on its way.
void Job::send_staged(Node& node) {
  if (node.error || node.staged || is_stopping()) return;
  auto piece = node.stage->next();
  if (!piece) return fail_stage(node, piece.error().message);
  if (*piece) node.link->send_stage(std::move(**piece));
}

void Job::fail_stage(Node& node, std::string why) {
  node.error = Error{fmt::format("{}: cannot stage files: {}", node.host.label(), why)};
  changed();
}

bool Job::are_all_staged() const {
  return std::all_of(nodes_.begin(), nodes_.end(),
                     [](const auto& node) { return node->staged || node->error; });
}

}  // namespace hvd
