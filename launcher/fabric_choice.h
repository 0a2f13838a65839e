// By which addresses the nodes of a job reach each other. Pure: what the nodes told about
// themselves, the options and the results of the probes go in; MASTER_ADDR and each node's own
// address come out, or an error that names the pair of nodes and every address that was tried.
//
// Names of interfaces are never compared between nodes; what counts is the address by which a node
// was really reached. A loopback address is given to nobody unless all nodes are one machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "hvdrun/v1/agent.pb.h"
#include "launcher/options.h"
#include "proto/v1.h"

namespace hvd {

struct FabricNode {
  std::string host;  // label
  hvdrun::v1::HelloReply hello;
};

struct FabricOptions {
  FabricMode mode = FabricMode::kRequire;
  std::vector<std::string> network_interfaces;  // names, subnets (10.9.0.0/16) or addresses
  std::string master_addr;                      // numeric; with FabricMode::kSkip also a name
};

// Where to look for node 0, best first.
struct FabricCandidates {
  std::vector<std::string> addresses;
  // False: one node, one machine or kSkip; decide_without_probes() then has the answer.
  bool needs_probe = false;
};

struct FabricDecision {
  struct Node {
    std::string address;
    std::string interface;  // empty: not known (address translation)
  };
  std::string master_addr;
  std::vector<Node> nodes;  // in node order
  std::vector<std::string> warnings;
};

// All nodes have the same boot id and network namespace.
[[nodiscard]] bool is_one_machine(const std::vector<FabricNode>& nodes);

[[nodiscard]] Result<FabricCandidates> fabric_candidates(const std::vector<FabricNode>& nodes,
                                                         const FabricOptions& options);

// probes[i] is node i's reply; probes[0] is not looked at; nullopt: the node did not answer. The
// first candidate that all nodes reached wins. kWarn: without one, that which most nodes reached.
[[nodiscard]] Result<FabricDecision> decide_fabric(
    const std::vector<FabricNode>& nodes, const FabricOptions& options,
    const FabricCandidates& candidates,
    const std::vector<std::optional<hvdrun::v1::FabricProbeReply>>& probes);

// Whether the node of that probe, if it answered, reached the candidate.
[[nodiscard]] bool has_reached(const std::optional<hvdrun::v1::FabricProbeReply>& probe,
                               const std::string& candidate);

// The answer where nothing is probed: the first candidate, and each node's own address that is in
// its subnet, or else the node's best one.
[[nodiscard]] FabricDecision decide_without_probes(const std::vector<FabricNode>& nodes,
                                                   const FabricOptions& options,
                                                   const FabricCandidates& candidates);

}  // namespace hvd
