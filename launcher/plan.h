// Hosts and slots -> ranks. Pure. Rank order follows host order (rank_order.h); local ranks are 0..
// on each host, in the order of its ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "launcher/hostlist.h"
#include "launcher/rank_order.h"
#include "proto/worker_env.h"

namespace hvd {

// One host of the job. Hosts that get no rank are not in the plan.
struct PlanNode {
  HostSpec host;
  std::vector<std::uint32_t> ranks;  // ascending, never empty; index = local rank
};

struct Plan {
  std::vector<PlanNode> nodes;     // node index = position
  std::vector<RankPlace> ranks;    // index = rank
  std::vector<std::string> notes;  // "-np 3 of 4 slots: node1 x2, node2 x1"
  bool leaves_slots = false;       // fewer ranks than the slots that the user counted: worth a word
};

// Whether a plan for np (nullopt: all slots) can be made before the nodes have told their GPUs.
[[nodiscard]] bool can_plan_without_hellos(const std::vector<HostSpec>& hosts,
                                           std::optional<std::uint32_t> np,
                                           RankOrder order = RankOrder::kBlock);

// Every host's slots are known (see with_gpu_counts) or not needed. More ranks than slots: exit 2.
// `source` says in that message where the hosts are from (Options::hosts_source); empty: -H LIST.
[[nodiscard]] Result<Plan> make_plan(const std::vector<HostSpec>& hosts,
                                     std::optional<std::uint32_t> np, std::string_view source = {},
                                     RankOrder order = RankOrder::kBlock);

// The hosts with unknown slots filled in: as many as GPUs, 1 without. num_gpus is in host order.
[[nodiscard]] std::vector<HostSpec> with_gpu_counts(std::vector<HostSpec> hosts,
                                                    const std::vector<std::uint32_t>& num_gpus);

}  // namespace hvd
