// The shim's hold on the processes of its job: the cgroup, the sweep, and what dead ones left.
#include <sys/epoll.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "agent/shim/dead_cgroups.h"
#include "agent/shim/remains.h"
#include "agent/shim/shim.h"
#include "base/log.h"

namespace hvd {

void Shim::make_cgroup() {
  if (config_.cgroup_parent().empty()) {
    if (config_.no_cgroup().empty()) config_.set_no_cgroup("no cgroup is wanted");
    return;
  }
  remove_dead_cgroups(config_.cgroup_parent());
  auto made = JobCgroup::make(config_.cgroup_parent(), config_.job_id(), config_.node());
  if (!made) return config_.set_no_cgroup(made.error().message);
  cgroup_ = std::move(*made);
  poller_.watch(cgroup_->events(), EPOLLPRI, [this](std::uint32_t) {
    (void)cgroup_->is_populated();  // the next change is told only after a look
    look_at_ = Nanos(0);
    sweep_at_ = Nanos(0);
  });
}

Container Shim::container() const {
  Container container;
  container.job_id = config_.job_id();
  container.node = config_.node();
  container.root = getpid();
  container.sessions = job_->crew.held_sessions();
  return container;
}

std::vector<ProcStat> Shim::find_all() const {
  Container all = container();
  if (cgroup_) all.listed = cgroup_->pids();
  return find_members(all);
}

// What is in the cgroup is certainly the job's, and the kernel kills it all at once. They are
// looked up before, so that the ends of workers among them are known as ours.
void Shim::kill_cgroup() {
  if (!cgroup_ || !cgroup_->is_populated()) return;
  sweep_.note_killed(living_among(cgroup_->pids()));
  cgroup_->kill();
}

// It stays while a survivor is in it.
void Shim::release_cgroup() {
  if (!cgroup_) return;
  poller_.forget(cgroup_->events());  // for ever ready once the folder has gone
  cgroup_->remove();
  cgroup_.reset();
}

void Shim::look_for_remains() {
  DeadProcesses dead = job_->crew.dead();
  dead.others.merge(sweep_.killed_pids());
  for (std::string& sentence : clear_remains("/dev/shm", "/tmp", dead, since_)) {
    finished_.add_remains(std::move(sentence));
  }
}

void Shim::sweep(Nanos now) {
  job_->crew.reap();
  kill_cgroup();
  const Sweep::Step step = sweep_.step(container(), Crew::has_children(), now);
  sweep_at_ = step.next;
  // Nothing is seen although children are left: where /proc hides a set-uid worker, its descriptor
  // still reaches it.
  if (step.num_members == 0 && !step.is_empty) job_->crew.signal_leaders(SIGKILL);
  if (!step.is_empty) return;
  if (cgroup_ && cgroup_->is_populated()) {
    sweep_at_ = now + kLookPause;  // for a cgroup whose end does not wake us
  } else {
    act(job_->ladder.handle(LadderEvent::kEmpty, now), now);
  }
}

}  // namespace hvd
