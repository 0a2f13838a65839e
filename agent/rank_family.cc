#include "agent/rank_family.h"

#include <algorithm>

#include "agent/shim/process_tree.h"
#include "base/process_state.h"

namespace hvd {
namespace {

// The nearest leader above the process or itself; 0: none.
pid_t leader_above(pid_t pid, const ProcessTree& tree, const std::vector<pid_t>& leaders) {
  const auto is_leader = [&leaders](pid_t candidate) {
    return std::find(leaders.begin(), leaders.end(), candidate) != leaders.end();
  };
  return is_leader(pid) ? pid : tree.find_ancestor(pid, is_leader);
}

}  // namespace

std::map<pid_t, std::vector<const ProcStat*>> find_families(const std::vector<ProcStat>& table,
                                                            const std::vector<pid_t>& leaders) {
  const ProcessTree tree(table);
  std::map<pid_t, std::vector<const ProcStat*>> families;
  for (const ProcStat& process : table) {
    pid_t leader = leader_above(process.pid, tree, leaders);
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
  const auto has = [&family](auto is_so) {
    return std::any_of(family.begin(), family.end(),
                       [&](const ProcStat* process) { return is_so(process->state); });
  };
  if (has([](char letter) { return is_stopped_state(letter); })) return 'T';
  return has([](char letter) { return letter == 'D'; }) ? 'D' : family.front()->state;
}

std::uint64_t family_ticks(const std::vector<const ProcStat*>& family) {
  std::uint64_t ticks = 0;
  for (const ProcStat* process : family) ticks += process->cpu_ticks;
  return ticks;
}

}  // namespace hvd
