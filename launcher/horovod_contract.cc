#include "launcher/horovod_contract.h"

#include <algorithm>
#include <map>
#include <set>

#include "launcher/ip_address.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;
using Probes = std::vector<std::optional<v1::FabricProbeReply>>;

constexpr const char* kLoopback = "127.0.0.1";
constexpr const char* kAnyAddress = "0.0.0.0";

bool is_ipv4(const std::string& text) {
  const auto address = parse_ip(text);
  return address && address->is_v4();
}

bool have_all_reached(const Probes& probes, const std::string& address) {
  return std::all_of(probes.begin() + 1, probes.end(),
                     [&address](const auto& probe) { return has_reached(probe, address); });
}

std::string first_ipv4(const v1::Interface& interface) {
  for (const std::string& address : interface.addresses()) {
    if (is_ipv4(address)) return address;
  }
  return {};
}

bool holds(const v1::Interface& interface, const std::string& address) {
  const auto wanted = parse_ip(address);
  return std::any_of(interface.addresses().begin(), interface.addresses().end(),
                     [&](const std::string& own) {
                       return own == address || (wanted && parse_ip(own) == wanted);
                     });
}

bool holds(const v1::HelloReply& hello, const std::string& address) {
  return std::any_of(
      hello.interfaces().begin(), hello.interfaces().end(),
      [&address](const v1::Interface& interface) { return holds(interface, address); });
}

// The IPv4 address beside another one, on the same interface of the node.
std::string beside(const v1::HelloReply& hello, const std::string& address) {
  for (const v1::Interface& interface : hello.interfaces()) {
    if (holds(interface, address)) return first_ipv4(interface);
  }
  return {};
}

std::string unprobed_address(const std::vector<FabricNode>& nodes,
                             const FabricCandidates& candidates, const FabricDecision& decision) {
  for (const std::string& address : candidates.addresses) {
    if (is_ipv4(address)) return address;
  }
  const std::string& own = decision.nodes.front().address;
  if (is_ipv4(own)) return own;
  return beside(nodes.front().hello, own);
}

}  // namespace

std::string horovod_listen_address(std::size_t num_hosts, const FabricOptions& options) {
  const bool is_plain = options.master_addr.empty() && options.network_interfaces.empty();
  return num_hosts == 1 && is_plain ? kLoopback : kAnyAddress;
}

std::string horovod_address(const std::vector<FabricNode>& nodes,
                            const FabricCandidates& candidates, const FabricDecision& decision,
                            const Probes& probes) {
  // One machine: whichever loopback address was found, this is one, too.
  if (is_loopback_address(decision.master_addr)) return kLoopback;
  if (is_ipv4(decision.master_addr)) return decision.master_addr;
  if (probes.empty()) return unprobed_address(nodes, candidates, decision);
  for (const std::string& address : candidates.addresses) {
    if (is_ipv4(address) && have_all_reached(probes, address)) return address;
  }
  return {};
}

v1::HorovodStore horovod_store(const std::vector<RankPlace>& places, const FabricNode& node0,
                               const std::string& address) {
  std::map<std::string, std::uint32_t> sizes;
  for (const RankPlace& place : places) {
    ++sizes["global"];
    ++sizes[fmt::format("local_{}", place.host)];
    ++sizes[fmt::format("cross_{}", place.local_rank)];
  }
  v1::HorovodStore store;
  for (const auto& [name, size] : sizes) {
    v1::HorovodStore::Scope* scope = store.add_scopes();
    scope->set_name(name);
    scope->set_size(size);
  }
  const bool is_own = is_loopback_address(address) || holds(node0.hello, address);
  if (is_own) store.set_only_at(address);
  return store;
}

void make_hosts_distinct(std::vector<RankPlace>& places) {
  std::map<std::string, std::set<std::uint32_t>> nodes;
  for (const RankPlace& place : places) nodes[place.host].insert(place.node);
  for (RankPlace& place : places) {
    if (nodes.at(place.host).size() < 2) continue;
    place.host = fmt::format("{}-node{}", place.host, place.node);
  }
}

}  // namespace hvd
