// The processes of each rank: its first one, what descends from it, and what is in its session
// (children whose parents have gone come to the shim). Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

#include "agent/shim/proc.h"

namespace hvd {

// By the pid of each leader, the leader itself first. A leader that is not in the table has none.
[[nodiscard]] std::map<pid_t, std::vector<const ProcStat*>> find_families(
    const std::vector<ProcStat>& table, const std::vector<pid_t>& leaders);

// What a user wants to know of them: 'T' or 'D' if any is so, else the leader's letter; '\0': gone.
[[nodiscard]] char family_state(const std::vector<const ProcStat*>& family);

// CPU time that all of them have used, in clock ticks.
[[nodiscard]] std::uint64_t family_ticks(const std::vector<const ProcStat*>& family);

}  // namespace hvd
