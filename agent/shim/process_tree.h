// Who descends from whom in a process table. Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "agent/shim/proc.h"

namespace hvd {

class ProcessTree {
 public:
  explicit ProcessTree(const std::vector<ProcStat>& table) {
    for (const ProcStat& process : table) by_pid_[process.pid] = {process.ppid, process.start_time};
  }

  // The chain of parents of `pid`, nearest first, until visit(ancestor) is false. A snapshot of
  // moving processes may hold a loop, and a parent that came after its child: a number that was
  // used again meanwhile.
  template <typename Visit>
  void climb(pid_t pid, Visit visit) const {
    for (std::size_t step = 0; step <= by_pid_.size(); ++step) {
      const auto child = by_pid_.find(pid);
      if (child == by_pid_.end() || child->second.parent <= 0) return;
      pid = child->second.parent;
      const auto parent = by_pid_.find(pid);
      if (parent != by_pid_.end() && parent->second.start_time > child->second.start_time) return;
      if (!visit(pid)) return;
    }
  }

  // The nearest ancestor that is so; 0: there is none.
  template <typename IsSo>
  [[nodiscard]] pid_t find_ancestor(pid_t pid, IsSo is_so) const {
    pid_t found = 0;
    climb(pid, [&](pid_t ancestor) {
      if (is_so(ancestor)) found = ancestor;
      return found == 0;
    });
    return found;
  }

 private:
  struct Entry {
    pid_t parent = 0;
    std::uint64_t start_time = 0;
  };
  std::unordered_map<pid_t, Entry> by_pid_;
};

}  // namespace hvd
