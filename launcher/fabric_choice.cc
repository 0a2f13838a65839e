#include "launcher/fabric_choice.h"

#include <algorithm>
#include <map>
#include <set>

#include "launcher/ip_address.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

constexpr std::size_t kMaxNodesNamed = 3;
using Probes = std::vector<std::optional<v1::FabricProbeReply>>;

bool is_same_machine(const v1::HelloReply& a, const v1::HelloReply& b) {
  return a.boot_id() == b.boot_id() && a.network_namespace() == b.network_namespace();
}

// Interfaces that may carry the job, best first: real before virtual ones, faster before slower
// ones, then as the node ordered them.
std::vector<const v1::Interface*> ranked_interfaces(const v1::HelloReply& hello,
                                                    bool with_loopback) {
  std::vector<const v1::Interface*> ranked;
  for (const v1::Interface& interface : hello.interfaces()) {
    if (interface.is_up() && (with_loopback || !interface.is_loopback())) {
      ranked.push_back(&interface);
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const v1::Interface* a, const v1::Interface* b) {
                     if (a->is_loopback() != b->is_loopback()) return b->is_loopback();
                     if (a->is_virtual() != b->is_virtual()) return b->is_virtual();
                     return a->speed_mbit() > b->speed_mbit();
                   });
  return ranked;
}

void add_once(std::vector<std::string>& list, const std::string& address) {
  if (std::find(list.begin(), list.end(), address) == list.end()) list.push_back(address);
}

// Whether the user's word (name, subnet or address) means this address of this interface.
bool is_meant(std::string_view word, const v1::Interface& interface, std::string_view address) {
  if (word == interface.name()) return true;
  const auto subnet = parse_subnet(word);
  const auto parsed = parse_ip(address);
  return subnet && parsed && subnet->contains(*parsed);
}

// The addresses of a node, best first; with words only those that they mean, in their order.
std::vector<std::string> addresses_of(const v1::HelloReply& hello,
                                      const std::vector<std::string>& words, bool with_loopback) {
  std::vector<std::string> list;
  const auto ranked = ranked_interfaces(hello, with_loopback);
  const auto add_for = [&](const std::string* word) {
    for (const v1::Interface* interface : ranked) {
      for (const std::string& address : interface->addresses()) {
        if (!with_loopback && is_loopback_address(address)) continue;
        if (word == nullptr || is_meant(*word, *interface, address)) add_once(list, address);
      }
    }
  };
  if (words.empty()) add_for(nullptr);
  for (const std::string& word : words) add_for(&word);
  return list;
}

std::string described_interfaces(const v1::HelloReply& hello) {
  std::string text;
  for (const v1::Interface& interface : hello.interfaces()) {
    if (interface.addresses().empty()) continue;
    text += fmt::format("{}{} ({}{})", text.empty() ? "" : ", ", interface.name(),
                        fmt::join(interface.addresses(), " "), interface.is_up() ? "" : ", down");
  }
  return text.empty() ? "none" : text;
}

std::string interface_holding(const v1::HelloReply& hello, const std::string& address) {
  const auto wanted = parse_ip(address);
  for (const v1::Interface& interface : hello.interfaces()) {
    for (const std::string& own : interface.addresses()) {
      if (own == address || (wanted && parse_ip(own) == wanted)) return interface.name();
    }
  }
  return {};
}

tl::unexpected<Error> no_address(const FabricNode& node, const FabricOptions& options) {
  if (!options.network_interfaces.empty()) {
    return make_error("{} has no usable address on --network-interfaces {}; it has {}", node.host,
                      fmt::join(options.network_interfaces, ","), described_interfaces(node.hello));
  }
  return make_error(
      "{} has no address that other nodes can reach, only {}; a loopback address is never given to "
      "another node: bring its network up, and see that /etc/hosts there does not map its name to "
      "127.0.1.1",
      node.host, described_interfaces(node.hello));
}

Result<FabricCandidates> candidates_by_option(const std::vector<FabricNode>& nodes,
                                              const FabricOptions& options, bool needs_probe) {
  const std::string& address = options.master_addr;
  if (!is_one_machine(nodes) && (is_loopback_address(address) || address == "localhost")) {
    return make_error(
        "--master-addr {} is a loopback address, of no use to nodes other than {}: give one of {}, "
        "or see whether /etc/hosts there maps its name to 127.0.1.1",
        address, nodes[0].host, described_interfaces(nodes[0].hello));
  }
  if (needs_probe && !parse_ip(address)) {
    return make_error(ExitCode::kUsage,
                      "--master-addr {} is not a numeric address, which the fabric check needs: "
                      "give one of {}, or --fabric=skip",
                      address, described_interfaces(nodes[0].hello));
  }
  return FabricCandidates{{address}, needs_probe};
}

// On one machine the loopback address suffices, whatever else it has.
std::string loopback_address(const v1::HelloReply& hello) {
  std::string found = "127.0.0.1";
  for (const v1::Interface& interface : hello.interfaces()) {
    if (!interface.is_loopback()) continue;
    const auto& list = interface.addresses();
    const bool has_usual = std::find(list.begin(), list.end(), found) != list.end();
    if (!list.empty() && !has_usual) found = list[0];
  }
  return found;
}

const v1::FabricProbeReply::Result* result_for(const std::optional<v1::FabricProbeReply>& probe,
                                               const std::string& candidate) {
  if (!probe) return nullptr;
  for (const auto& result : probe->results()) {
    if (result.candidate() == candidate) return &result;
  }
  return nullptr;
}

std::size_t num_reached(const Probes& probes, const std::string& candidate) {
  return std::count_if(probes.begin() + 1, probes.end(),
                       [&](const auto& probe) { return has_reached(probe, candidate); });
}

// The address of a node where no probe told it: one in the subnet of MASTER_ADDR, else its best
// one.
FabricDecision::Node own_address(const FabricNode& node, const std::string& master_addr,
                                 const FabricOptions& options, bool with_loopback) {
  const auto master = parse_ip(master_addr);
  const auto list = addresses_of(node.hello, options.network_interfaces, with_loopback);
  for (const v1::Interface& interface : node.hello.interfaces()) {
    for (int i = 0; master && i < interface.addresses_size(); ++i) {
      const std::string& address = interface.addresses(i);
      if (std::find(list.begin(), list.end(), address) == list.end()) continue;
      const auto own = parse_ip(address);
      const bool has_prefix = own && i < interface.prefix_lengths_size();
      if (has_prefix && Subnet{*own, interface.prefix_lengths(i)}.contains(*master)) {
        return {address, interface.name()};
      }
    }
  }
  if (list.empty()) return {};
  return {list[0], interface_holding(node.hello, list[0])};
}

FabricDecision::Node seen_address(const FabricNode& node,
                                  const v1::FabricProbeReply::Result& result) {
  const std::string& interface = result.interface();
  return {result.local_address(),
          interface.empty() ? interface_holding(node.hello, result.local_address()) : interface};
}

// Two machines under one address: what a peer sends to it reaches only one of them. The sentence
// about it, or nothing.
std::string clash_in(const std::vector<FabricNode>& nodes,
                     const std::vector<FabricDecision::Node>& chosen) {
  std::map<std::string, std::size_t> owner;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i].address.empty()) continue;
    const auto [found, is_new] = owner.emplace(chosen[i].address, i);
    if (is_new || is_same_machine(nodes[found->second].hello, nodes[i].hello)) continue;
    return fmt::format("{} and {} are both seen as {}", nodes[found->second].host, nodes[i].host,
                       chosen[i].address);
  }
  return {};
}

// What is wrong with the addresses under one candidate that all nodes have reached, or nothing.
std::string flaw_in(const std::vector<FabricNode>& nodes, const FabricDecision& decision) {
  for (std::size_t i = 0; i < nodes.size() && !is_one_machine(nodes); ++i) {
    // Nodes on node 0's own machine may well come by its loopback interface.
    const std::string& address = decision.nodes[i].address;
    if (!is_loopback_address(address)) continue;
    return fmt::format("{} is seen as {}, a loopback address", nodes[i].host, address);
  }
  return clash_in(nodes, decision.nodes);
}

FabricDecision decision_for(const std::vector<FabricNode>& nodes, const FabricOptions& options,
                            const std::string& candidate, const Probes& probes) {
  FabricDecision decision;
  decision.master_addr = candidate;
  decision.nodes.push_back({candidate, interface_holding(nodes[0].hello, candidate)});
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    const auto* result = result_for(probes[i], candidate);
    const bool is_seen = result != nullptr && result->reached();
    decision.nodes.push_back(is_seen ? seen_address(nodes[i], *result)
                                     : own_address(nodes[i], candidate, options, false));
    // An interface that the node does not have: somebody translates addresses in between.
    if (is_seen && decision.nodes.back().interface.empty()) {
      decision.warnings.push_back(
          fmt::format("{} is seen as {}, which is no address of its own (address translation?)",
                      nodes[i].host, result->local_address()));
    }
  }
  return decision;
}

std::string outcome_text(const FabricCandidates& candidates, std::uint32_t port,
                         const std::optional<v1::FabricProbeReply>& probe) {
  std::string text;
  for (const std::string& address : candidates.addresses) {
    const auto* result = result_for(probe, address);
    const std::string outcome = result == nullptr   ? "no report"
                                : result->reached() ? "reached"
                                                    : result->error();
    const bool is_v6 = address.find(':') != std::string::npos;
    text += fmt::format("{}{}{}{}:{} {}", text.empty() ? "" : ", ", is_v6 ? "[" : "", address,
                        is_v6 ? "]" : "", port, outcome.empty() ? "not reached" : outcome);
  }
  return text;
}

// Every pair that has no way, with all addresses tried.
std::string unreached_text(const std::vector<FabricNode>& nodes, const FabricCandidates& candidates,
                           const Probes& probes) {
  const std::uint32_t port = nodes[0].hello.fabric_listen().port();
  std::string text;
  std::size_t num_failed = 0;
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    const bool reached_all =
        std::all_of(candidates.addresses.begin(), candidates.addresses.end(),
                    [&](const std::string& address) { return has_reached(probes[i], address); });
    if (reached_all || ++num_failed > kMaxNodesNamed) continue;
    const bool reached_any =
        std::any_of(candidates.addresses.begin(), candidates.addresses.end(),
                    [&](const std::string& address) { return has_reached(probes[i], address); });
    text += fmt::format("{}{} {} {} ({})", text.empty() ? "" : "; ", nodes[i].host,
                        reached_any ? "reaches only a part of the addresses of" : "cannot reach",
                        nodes[0].host, outcome_text(candidates, port, probes[i]));
  }
  if (num_failed > kMaxNodesNamed) {
    text += fmt::format("; and {} more nodes", num_failed - kMaxNodesNamed);
  }
  return text;
}

}  // namespace

bool has_reached(const std::optional<v1::FabricProbeReply>& probe, const std::string& candidate) {
  const auto* result = result_for(probe, candidate);
  return result != nullptr && result->reached();
}

bool is_one_machine(const std::vector<FabricNode>& nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [&](const FabricNode& node) {
    return is_same_machine(node.hello, nodes[0].hello);
  });
}

Result<FabricCandidates> fabric_candidates(const std::vector<FabricNode>& nodes,
                                           const FabricOptions& options) {
  const bool is_one = is_one_machine(nodes);
  const bool needs_probe = !is_one && options.mode != FabricMode::kSkip;
  if (!options.master_addr.empty()) return candidates_by_option(nodes, options, needs_probe);
  if (is_one && options.network_interfaces.empty()) {
    return FabricCandidates{{loopback_address(nodes[0].hello)}, false};
  }
  auto addresses = addresses_of(nodes[0].hello, options.network_interfaces, is_one);
  if (addresses.empty()) return no_address(nodes[0], options);
  return FabricCandidates{std::move(addresses), needs_probe};
}

Result<FabricDecision> decide_fabric(const std::vector<FabricNode>& nodes,
                                     const FabricOptions& options,
                                     const FabricCandidates& candidates, const Probes& probes) {
  std::string flaw;
  const std::string* most_reached = &candidates.addresses[0];
  for (const std::string& candidate : candidates.addresses) {
    const std::size_t count = num_reached(probes, candidate);
    if (count > num_reached(probes, *most_reached)) most_reached = &candidate;
    if (count + 1 < nodes.size()) continue;
    FabricDecision decision = decision_for(nodes, options, candidate, probes);
    const std::string found = flaw_in(nodes, decision);
    if (found.empty()) return decision;
    if (flaw.empty()) flaw = fmt::format("by way of {}, {}", candidate, found);
  }
  const std::string problem = flaw.empty() ? unreached_text(nodes, candidates, probes) : flaw;
  if (options.mode == FabricMode::kRequire) {
    return make_error(
        "{}; open the port between the nodes or choose others by --master-port, name the network "
        "by "
        "--network-interfaces, or go on with --fabric=warn",
        problem);
  }
  FabricDecision decision = decision_for(nodes, options, *most_reached, probes);
  decision.warnings.insert(decision.warnings.begin(), problem);
  return decision;
}

FabricDecision decide_without_probes(const std::vector<FabricNode>& nodes,
                                     const FabricOptions& options,
                                     const FabricCandidates& candidates) {
  FabricDecision decision;
  decision.master_addr = candidates.addresses[0];
  const bool is_one = is_one_machine(nodes);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    // Node 0 and all nodes of one machine are found under MASTER_ADDR itself.
    const bool is_master = (i == 0 || is_one) && parse_ip(decision.master_addr).has_value();
    decision.nodes.push_back(
        is_master ? FabricDecision::Node{decision.master_addr,
                                         interface_holding(nodes[i].hello, decision.master_addr)}
                  : own_address(nodes[i], decision.master_addr, options, is_one));
  }
  return decision;
}

}  // namespace hvd
