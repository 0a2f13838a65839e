// What is seen of the ranks from outside, for the launcher to judge: signs of life, evidence of
// ranks that hang, and the node's GPUs.
#include <unistd.h>

#include <utility>

#include "agent/job.h"
#include "agent/worker_spec.h"

namespace hvd {

namespace v1 = hvdrun::v1;

void Job::start_vitals() {
  if (hello_.vitals_ms() > 0) {
    vitals_.emplace(std::chrono::milliseconds(hello_.vitals_ms()), sysconf(_SC_CLK_TCK));
  }
  if (hello_.gpu_stats_ms() > 0) {
    gpus_.emplace(loop_, std::chrono::milliseconds(hello_.gpu_stats_ms()),
                  [this](const std::string& text) { take_log(LogLevel::kWarning, text); });
    gpus_->start(outside_env(), cgroup());
  }
}

// Programs beside the job carry its mark, so that they are found whoever else dies.
EnvList Job::outside_env() const {
  const EnvList base = base_env(config_.node_env, hello_);
  const EnvList mark = {{"HVDRUN_JOB_ID", hello_.job_id()},
                        {"HVDRUN_NODE", fmt::format_int(hello_.node()).str()}};
  return merge_env({&base, &mark}, {});
}

// Of this job, where it has one.
std::string Job::cgroup() const {
  const std::string& held = hello_reply_.containment();
  const std::string start = std::string(kByCgroup) + " ";
  return held.starts_with(start) ? held.substr(start.size()) : "";
}

void Job::note_started(std::uint32_t rank, pid_t pid) {
  if (!vitals_) return;
  const bool is_first = vitals_->is_empty();
  vitals_->start(rank, pid, monotonic_now());
  if (is_first) look_at_ranks();
}

void Job::note_ended(std::uint32_t rank) {
  if (vitals_) vitals_->end(rank);
  if (running_.empty()) gpus_.reset();
}

void Job::look_at_ranks() {
  if (vitals_->is_empty()) return;
  const Nanos now = monotonic_now();
  vitals_->look(read_process_table(), now);
  v1::ControlReply reply;
  *reply.mutable_vital_signs() = vitals_->signs(now);
  service_.send(std::move(reply));
  vitals_timer_.start(std::chrono::milliseconds(hello_.vitals_ms()), [this] { look_at_ranks(); });
}

void Job::add_vitals(v1::Heartbeat* heartbeat) {
  for (const auto& [rank, pid] : running_) {
    v1::RankVitals& vitals = *heartbeat->add_ranks();
    vitals.set_rank(rank);
    vitals.set_pid(pid);
    if (const auto stat = read_stat(pid)) vitals.set_state(std::string(1, stat->state));
  }
  if (!gpus_) return;
  v1::GpuSummary summary = gpus_->take();
  if (summary.gpus_size() > 0) *heartbeat->mutable_gpus() = std::move(summary);
}

void Job::take_collect(const v1::CollectEvidence& request) {
  evidence_ = std::make_unique<EvidenceCollector>(
      loop_, request, EvidenceCollector::Place{outside_env(), hello_.cwd(), cgroup()});
  const auto pid_of = [this](std::uint32_t rank) {
    const auto found = running_.find(rank);
    return found == running_.end() ? pid_t{0} : static_cast<pid_t>(found->second);
  };
  const auto tell = [this](v1::RankEvidence rank) {
    v1::ControlReply reply;
    *reply.mutable_evidence()->add_ranks() = std::move(rank);
    service_.send(std::move(reply));
  };
  evidence_->start(pid_of, tell, [this] {
    v1::ControlReply reply;
    reply.mutable_evidence()->set_done(true);
    service_.send(std::move(reply));
  });
}

}  // namespace hvd
