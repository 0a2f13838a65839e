// --stage: the workers' folder stands in the job's and goes with it; what the launcher sends is
// kept beside, for the next job.
#include <unistd.h>

#include <utility>

#include "agent/executable.h"
#include "agent/job.h"
#include "agent/job_dir.h"
#include "agent/worker_spec.h"

namespace hvd {

namespace v1 = hvdrun::v1;

Result<void> Job::make_staged_dir() {
  hello_.set_cwd(staged_path(job_dir_));
  return make_job_dir(hello_.cwd());
}

void Job::take_stage(v1::StageRequest&& request) {
  if (!hello_.wants_stage() || state_ != JobState::kReady) {
    return refuse("the request does not fit the job's state");
  }
  if (!intake_) {
    StageIntake::Handlers handlers;
    handlers.on_need = [this](v1::StageNeed need) {
      v1::StageReply reply;
      *reply.mutable_need() = std::move(need);
      service_.send_stage(std::move(reply));
    };
    handlers.on_done = [this](const std::string& error) { tell_staged(error); };
    intake_.emplace(loop_, hello_.cwd(),
                    StageCache(stage_cache_dir(timeline_dir_parents(geteuid()))),
                    std::move(handlers));
  }
  intake_->take(std::move(request));
}

// The command may be one of the files.
void Job::tell_staged(const std::string& error) {
  const ExecutableLookup found = find_executable(hello_.argv_size() > 0 ? hello_.argv(0) : "",
                                                 base_env(config_.node_env, hello_), hello_.cwd());
  hello_reply_.set_executable(found.path);
  v1::StageReply reply;
  reply.mutable_done()->set_error(error);
  reply.mutable_done()->set_executable(found.path);
  reply.mutable_done()->set_executable_errno(found.errno_value);
  service_.send_stage(std::move(reply));
}

}  // namespace hvd
