#include "agent/rank_family.h"

#include <algorithm>
#include <unordered_map>

namespace hvd {
namespace {

using ParentOf = std::unordered_map<pid_t, pid_t>;

// The nearest leader above the process or itself; 0: none. A snapshot of moving processes may hold
// a loop.
pid_t leader_above(pid_t pid, const ParentOf& parents, const std::vector<pid_t>& leaders) {
  for (std::size_t step = 0; step <= parents.size() && pid > 0; ++step) {
    if (std::find(leaders.begin(), leaders.end(), pid) != leaders.end()) return pid;
    const auto found = parents.find(pid);
    if (found == parents.end()) return 0;
    pid = found->second;
  }
  return 0;
}

}  // namespace

std::map<pid_t, std::vector<const ProcStat*>> find_families(const std::vector<ProcStat>& table,
                                                            const std::vector<pid_t>& leaders) {
  ParentOf parents;
  for (const ProcStat& process : table) parents[process.pid] = process.ppid;
  std::map<pid_t, std::vector<const ProcStat*>> families;
  for (const ProcStat& process : table) {
    pid_t leader = leader_above(process.pid, parents, leaders);
    const bool is_in_session =
        std::find(leaders.begin(), leaders.end(), process.session) != leaders.end();
    if (leader == 0 && is_in_session) leader = process.session;
    if (leader == 0) continue;
    auto& family = families[leader];
    family.insert(process.pid == leader ? family.begin() : family.end(), &process);
  }
  std::erase_if(families, [](const auto& entry) {
    return entry.second.front()->pid != entry.first;  // its number is all that is left of it
  });
  return families;
}

char family_state(const std::vector<const ProcStat*>& family) {
  if (family.empty()) return '\0';
  const auto has = [&family](char letter) {
    return std::any_of(family.begin(), family.end(),
                       [letter](const ProcStat* process) { return process->state == letter; });
  };
  if (has('T') || has('t')) return 'T';
  return has('D') ? 'D' : family.front()->state;
}

std::uint64_t family_ticks(const std::vector<const ProcStat*>& family) {
  std::uint64_t ticks = 0;
  for (const ProcStat* process : family) ticks += process->cpu_ticks;
  return ticks;
}

}  // namespace hvd
