#include "agent/leftovers.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace hvd {
namespace {

constexpr Nanos kDrainPause = std::chrono::milliseconds(10);

}  // namespace

Container container_of_agent(std::string job_id, std::uint32_t node) {
  Container container;
  container.job_id = std::move(job_id);
  container.node = node;
  container.root = getpid();
  return container;
}

Leftovers::Leftovers(Loop& loop, Container container, std::vector<JobCgroup> cgroups)
    : children_(OwnChildren::of(loop)),
      excluded_(container.excluded),
      container_(std::move(container)),
      cgroups_(std::move(cgroups)),
      timer_(loop) {}

void Leftovers::sweep(Nanos limit, Done done) {
  deadline_ = boottime_now() + limit;
  done_ = std::move(done);
  step();
}

// Whether somebody is still inside.
bool Leftovers::kill_cgroups() {
  bool is_populated = false;
  for (const JobCgroup& cgroup : cgroups_) {
    if (!cgroup.is_populated()) continue;
    is_populated = true;
    sweep_.note_killed(living_among(cgroup.pids()));
    cgroup.kill();
  }
  return is_populated;
}

void Leftovers::step() {
  const Nanos now = boottime_now();
  const bool is_populated = kill_cgroups();
  container_.excluded = children_.pids();
  container_.excluded.insert(excluded_.begin(), excluded_.end());
  const Sweep::Step result = sweep_.step(container_, children_.reap_strays(), now);
  if (result.is_empty && !is_populated) return end({});
  if (now >= deadline_) {
    Container all = container_;
    for (const JobCgroup& cgroup : cgroups_) all.listed.merge(cgroup.pids());
    return end(find_members(all));
  }
  timer_.expires_after(std::max(result.next - now, is_populated ? kDrainPause : Nanos(0)));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) step();
  });
}

void Leftovers::end(const std::vector<ProcStat>& survivors) {
  for (const JobCgroup& cgroup : cgroups_) cgroup.remove();
  done_(survivors);
}

}  // namespace hvd
