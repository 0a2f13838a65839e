// What Horovod's ranks are promised beside their rank variables: a store on node 0 that knows their
// scopes, under an IPv4 address that all nodes reach. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hvdrun/v1/agent.pb.h"
#include "launcher/fabric_choice.h"
#include "proto/worker_env.h"

namespace hvd {

// Where node 0's agent listens before the plan and the addresses are settled: on loopback where one
// node alone is asked for and nothing is said about networks, else on all its IPv4 addresses.
[[nodiscard]] std::string horovod_listen_address(std::size_t num_hosts,
                                                 const FabricOptions& options);

// The address that the ranks are given: MASTER_ADDR if it is IPv4 (127.0.0.1 for any loopback
// address), else the first IPv4 address that all nodes reached; where nothing was probed (probes is
// empty), the best one of node 0. Empty: node 0 has none that all nodes reach.
[[nodiscard]] std::string horovod_address(
    const std::vector<FabricNode>& nodes, const FabricCandidates& candidates,
    const FabricDecision& decision,
    const std::vector<std::optional<hvdrun::v1::FabricProbeReply>>& probes);

// Scopes and their sizes, counted from where the ranks are: global, local_HOST for each host,
// cross_L for each local rank L. `only_at`: the address, unless node 0 does not hold it itself
// (address translation).
[[nodiscard]] hvdrun::v1::HorovodStore horovod_store(const std::vector<RankPlace>& places,
                                                     const FabricNode& node0,
                                                     const std::string& address);

// HOROVOD_HOSTNAME names a scope, so nodes that the host list calls alike (two ports of one host)
// get names of their own: HOST-nodeINDEX.
void make_hosts_distinct(std::vector<RankPlace>& places);

}  // namespace hvd
