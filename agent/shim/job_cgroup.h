// The strongest hold on a job's processes: a cgroup (v2) of this job and node with a leaf for each
// rank, below the cgroup in which agent and shim run themselves. No fork leads out of it, one write
// kills everything in it at once, and the kernel says when it is empty (zombies left out).
//
// Needed is only that the folder can be made and its cgroup.kill be written (kernel 5.14): for root
// in most places, for others in a scope that systemd has delegated to them. No controller is
// needed.
//
// Lifecycle: made by the shim before the first worker; remove() once it is empty. The destructor
// only closes. Any thread; nothing blocks, but make() may wait for the end of what a dead job of
// the same name has left.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace hvd {

// ---- pure ----

// The cgroup v2 path in a /proc/PID/cgroup: "/user.slice/session-3.scope". Nothing if there is none
// or if it lies outside of what this process may see.
[[nodiscard]] std::optional<std::string> parse_own_cgroup(std::string_view text);
// Whether a cgroup.events says that a living process is inside.
[[nodiscard]] bool is_populated_in(std::string_view events);
// "hvd-JOB-nNODE": nobody else's folder has this name.
[[nodiscard]] std::string job_cgroup_name(std::string_view job_id, std::uint32_t node);

// ---- this machine ----

// Where cgroup v2 is mounted: alone, or beside v1 (hybrid). Empty: nowhere.
[[nodiscard]] std::string find_cgroup_mount();
// The folder of the cgroup that this process is in; an error says why there is none.
[[nodiscard]] Result<std::string> own_cgroup();
// Folders of this job and node anywhere below `top`, for somebody who is in another cgroup himself.
[[nodiscard]] std::vector<std::string> find_job_cgroups(const std::string& top,
                                                        std::string_view job_id,
                                                        std::uint32_t node);

class JobCgroup {
 public:
  // A fresh folder below `parent`. What an older one of that name holds is killed first: it can
  // only be a dead job's.
  [[nodiscard]] static Result<JobCgroup> make(const std::string& parent, std::string_view job_id,
                                              std::uint32_t node);
  // A folder that exists; an error if it cannot be killed.
  [[nodiscard]] static Result<JobCgroup> open(std::string path);

  [[nodiscard]] const std::string& path() const { return path_; }

  // A leaf of the given name, as a descriptor for clone3. Not valid if the kernel refuses.
  [[nodiscard]] UniqueFd make_leaf(const std::string& name) const;

  // SIGKILL to everything inside, also to what forks meanwhile. False if the kernel refuses.
  bool kill() const;  // NOLINT(modernize-use-nodiscard)
  // True also if it cannot be read: unknown is not empty.
  [[nodiscard]] bool is_populated() const;
  // Polls POLLPRI when is_populated() may have changed; calling that arms it anew.
  [[nodiscard]] int events() const { return events_.get(); }
  // Waits for emptiness; true if it came.
  [[nodiscard]] bool wait_empty(Nanos limit) const;
  // The processes inside, also of nested cgroups; those of other pid namespaces are left out.
  [[nodiscard]] std::set<pid_t> pids() const;
  // True if the folder is gone.
  bool remove() const;  // NOLINT(modernize-use-nodiscard)

 private:
  JobCgroup(std::string path, UniqueFd kill, UniqueFd events);

  std::string path_;
  UniqueFd kill_;
  UniqueFd events_;
  UniqueFd lock_;  // of one that was made here
};

}  // namespace hvd
