// Why the kernel starts no more processes (EAGAIN): the limit of a cgroup that is full. The rules
// of /proc/self/cgroup and pids.max are those of cgroups(7).
#pragma once

#include <string>
#include <string_view>

namespace hvd {

// "pids.max of /system.slice/x.service is 64, and 64 are there", of the innermost cgroup that has
// no room; empty: none is full, so it is another limit (ulimit -u, the kernel's). `cgroups` is the
// text of /proc/self/cgroup, `root` the folder where cgroups are mounted.
[[nodiscard]] std::string full_pids_cgroup(std::string_view cgroups,
                                           const std::string& root = "/sys/fs/cgroup");

}  // namespace hvd
