// Which CPUs and whose memory each rank of a node gets with --bind. Pure: what the machine is goes
// in, sets of CPUs come out. Nothing outside the CPUs that the agent itself may use is ever given.
//
// A rank stands at the NUMA node of its GPU. Ranks whose GPU's place is not known, or that have
// none, are spread over the NUMA nodes in blocks, in proportion to their CPUs. With `numa` a rank
// may use all CPUs of its NUMA node; with `core` the ranks of a NUMA node share it out in blocks of
// whole cores (with all threads of each), and where there are more ranks than cores several ranks
// have the same core.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

enum class BindMode { kNone, kNuma, kCore };

// "numa", "core"; all else is kNone.
[[nodiscard]] BindMode parse_bind_mode(std::string_view text);

struct NumaNode {
  int id = 0;
  std::vector<std::vector<int>> cores;  // each its CPUs; those that may be used, in order
};

struct Binding {
  std::vector<int> cpus;  // sorted; empty: not bound
  int numa_node = -1;     // whose memory is preferred; -1: none
};

// `wanted`: for each rank of the node, in order of local rank, the NUMA node of its GPU; nullopt:
// not known. A NUMA node without a usable CPU counts as not known.
[[nodiscard]] std::vector<Binding> decide_bindings(const std::vector<NumaNode>& nodes,
                                                   BindMode mode,
                                                   const std::vector<std::optional<int>>& wanted);

// "0-3,8,10-11" and back, as the kernel writes lists of CPUs. What is no such list gives none.
[[nodiscard]] std::string format_cpus(const std::vector<int>& cpus);
[[nodiscard]] std::vector<int> parse_cpus(std::string_view list);

}  // namespace hvd
