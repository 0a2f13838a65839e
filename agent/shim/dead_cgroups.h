// Folders of jobs' cgroups that nobody will remove any more: their shim has died with everything
// else of the job (a container or a whole host that was killed), or a survivor held one up and has
// ended since. The next job in the same place takes them away.
//
// What proves that a job is dead is the lock that its shim holds on the folder as long as it lives,
// (folder_lock.h).
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"

namespace hvd {

// The name that job_cgroup_name() gives. Pure.
[[nodiscard]] bool is_job_cgroup_name(std::string_view name);

// Removes the empty folders of dead jobs in `parent`. Younger ones than `age` stay: their shim may
// be about to lock them. Does not block.
void remove_dead_cgroups(const std::string& parent, Nanos age = std::chrono::minutes(1));

}  // namespace hvd
