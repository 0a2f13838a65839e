// Hosts and slots -> ranks. Pure. Rank order is host order, local ranks 0.. on each host (block).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "launcher/hostlist.h"
#include "proto/worker_env.h"

namespace hvd {

// One host of the job. Hosts that get no rank are not in the plan.
struct PlanNode {
  HostSpec host;
  std::uint32_t first_rank = 0;
  std::uint32_t num_ranks = 0;
};

struct Plan {
  std::vector<PlanNode> nodes;     // node index = position
  std::vector<RankPlace> ranks;    // index = rank
  std::vector<std::string> notes;  // "-np 3 of 4 slots: node1 x2, node2 x1"
};

// Whether a plan for np (nullopt: all slots) can be made before the nodes have told their GPUs.
[[nodiscard]] bool can_plan_without_hellos(const std::vector<HostSpec>& hosts,
                                           std::optional<std::uint32_t> np);

// Every host's slots are known (see with_gpu_counts) or not needed. More ranks than slots: exit 2.
// `source` says in that message where the hosts are from (Options::hosts_source); empty: -H LIST.
[[nodiscard]] Result<Plan> make_plan(const std::vector<HostSpec>& hosts,
                                     std::optional<std::uint32_t> np, std::string_view source = {});

// The hosts with unknown slots filled in: as many as GPUs, 1 without. num_gpus is in host order.
[[nodiscard]] std::vector<HostSpec> with_gpu_counts(std::vector<HostSpec> hosts,
                                                    const std::vector<std::uint32_t>& num_gpus);

}  // namespace hvd
