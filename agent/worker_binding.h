// --bind for the workers of this node: each gets its CPUs and the place of its memory. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/cpu_topology.h"
#include "hvdrun/v1/shim.pb.h"

namespace hvd {

// Fills in cpus and memory_node of every worker. What was decided, by rank, for a person: "CPUs
// 0-15, memory of NUMA node 0, GPU 0000:3b:00.0"; "not bound, CPUs 0-63".
[[nodiscard]] std::map<std::uint32_t, std::string> bind_workers(
    std::vector<hvdrun::v1::ShimSpawn>& parts, BindMode mode, const Topology& topology);

}  // namespace hvd
