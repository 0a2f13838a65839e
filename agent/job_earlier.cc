// What earlier jobs have left on this node: processes are told before anything is started, folders
// without any go.
#include <unistd.h>

#include <set>
#include <utility>

#include "agent/dead_job_dirs.h"
#include "agent/earlier_jobs.h"
#include "agent/job.h"
#include "agent/job_dir.h"
#include "agent/worker_spec.h"
#include "base/own_program.h"

namespace hvd {

namespace v1 = hvdrun::v1;

namespace {

constexpr std::size_t kMaxEarlierJobs = 8;

std::uint64_t memory_of(const std::vector<ProcStat>& processes,
                        const std::vector<GpuProcess>& on_gpus) {
  std::uint64_t mib = 0;
  for (const GpuProcess& holder : on_gpus) {
    for (const ProcStat& process : processes)
      mib += process.pid == holder.pid ? holder.used_mib : 0;
  }
  return mib;
}

}  // namespace

void Job::look_at_earlier_jobs() {
  const MarkedProcesses found = find_earlier_jobs();
  const auto parents = job_dir_parents(env_value(config_.node_env, "XDG_RUNTIME_DIR"), geteuid());
  std::vector<EarlierJob> jobs;
  std::set<std::string> alive;
  for (const auto& [mark, processes] : found) {
    alive.insert(mark.job_id);
    if (jobs.size() == kMaxEarlierJobs) continue;
    jobs.push_back({mark, processes, since_sign_of(parents, mark.job_id, mark.node)});
  }
  remove_dead_job_dirs(parents, alive);
  if (jobs.empty()) return;
  if (!earlier_gpus_.find_program(base_env(config_.node_env, hello_))) return tell_earlier(jobs);
  is_telling_earlier_ = true;
  earlier_gpus_.ask(kGpuProcessQuery, [this, jobs = std::move(jobs)](const std::string& output) {
    std::vector<EarlierJob> known = jobs;
    const std::vector<GpuProcess> on_gpus = parse_gpu_processes(output);
    for (EarlierJob& job : known) job.gpu_mib = memory_of(job.processes, on_gpus);
    tell_earlier(known);
    let_held_go();
  });
}

void Job::tell_earlier(const std::vector<EarlierJob>& jobs) {
  for (const EarlierJob& job : jobs) {
    take_log(LogLevel::kWarning, describe_earlier_job(job, boottime_now(), own_program()));
  }
}

// Without this node's probe no node of the job gets a spawn; with one node, or without a check of
// the fabric, this node waits alone.
bool Job::holds(v1::ControlRequest::MessageCase kind) const {
  return is_telling_earlier_ &&
         (kind == v1::ControlRequest::kFabricProbe || kind == v1::ControlRequest::kSpawn);
}

void Job::let_held_go() {
  is_telling_earlier_ = false;
  for (v1::ControlRequest& request : std::exchange(held_, {})) {
    if (state_ == JobState::kReady) take_control(std::move(request));
  }
}

}  // namespace hvd
