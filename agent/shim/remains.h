// What dead processes of a job left in shared memory and in /tmp: files whose name holds the pid of
// one, that belong to the job's user and have come since the job began. Segments of NCCL and torch
// that a worker itself left are removed; everything else is only told.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace hvd {

struct DeadProcesses {
  std::set<pid_t> workers;  // the ranks' own
  std::set<pid_t> others;   // that were seen to be the job's
};

// Pure: the first number of a file's name that stands by itself ("torch_4711_3f" has 4711, "x47"
// has none); 0 if there is none.
[[nodiscard]] pid_t pid_in_name(std::string_view name);

// Pure: whether a file of /dev/shm with this name may go when its worker has.
[[nodiscard]] bool is_removable_segment(std::string_view name);

// Looks through at most 4096 names of each folder. `since` is wall clock time, as files have it.
// Returns a sentence for each file that stays.
[[nodiscard]] std::vector<std::string> clear_remains(const std::string& shm_folder,
                                                     const std::string& tmp_folder,
                                                     const DeadProcesses& dead, Nanos since);

}  // namespace hvd
