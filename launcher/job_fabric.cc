// Which addresses the nodes use among themselves: asks the agents to try, takes the decision of
// fabric_choice.
#include <algorithm>

#include "base/log.h"
#include "launcher/job.h"

namespace hvd {
namespace {

// How long a firewall that drops without a word holds up the start. Ten tries, where each packet is
// 400 ms on its way and every tenth gets lost.
constexpr Nanos kProbeTime = std::chrono::seconds(10);

}  // namespace

// The nodes that have ranks, in plan order.
std::vector<Node*> Job::planned_nodes() const {
  std::vector<Node*> result;
  for (const auto& node : nodes_) {
    if (!node->ranks.empty()) result.push_back(node.get());
  }
  return result;
}

Task<bool> Job::check_fabric() {
  const std::vector<Node*> planned = planned_nodes();
  const v1::FabricListenReply& reserved = planned.front()->hello->fabric_listen();
  if (reserved.port() == 0) {
    fail_start(Error{fmt::format("{}: no port for MASTER_PORT: {}", planned.front()->host.label(),
                                 reserved.error())});
    co_return false;
  }
  master_port_ = reserved.port();
  std::vector<FabricNode> facts;
  for (const Node* node : planned) facts.push_back({node->host.label(), *node->hello});
  const FabricOptions options{options_.fabric, options_.network_interfaces, options_.master_addr};
  const auto candidates = fabric_candidates(facts, options);
  if (!candidates) {
    fail_start(candidates.error());
    co_return false;
  }
  if (!candidates->needs_probe) {
    const FabricDecision unprobed = decide_without_probes(facts, options, *candidates);
    take_fabric(unprobed);
    settle_horovod(facts, *candidates, unprobed, {});
    co_return true;
  }
  const bool is_answered = co_await probe(planned, candidates->addresses);
  if (!is_answered) co_return false;
  std::vector<std::optional<v1::FabricProbeReply>> probes;
  for (const Node* node : planned) probes.push_back(node->probe);
  const auto decision = decide_fabric(facts, options, *candidates, probes);
  if (!decision) {
    fail_start(decision.error());
    co_return false;
  }
  take_fabric(*decision);
  settle_horovod(facts, *candidates, *decision, probes);
  co_return true;
}

// Every node but the first tries all candidates at once. False: a cause stands.
Task<bool> Job::probe(const std::vector<Node*>& planned,
                      const std::vector<std::string>& candidates) {
  const SteadyTime now = std::chrono::steady_clock::now();
  const Nanos time = std::min<Nanos>(kProbeTime, start_deadline_ - now);
  v1::ControlRequest request;
  v1::FabricProbe* probe = request.mutable_fabric_probe();
  for (const std::string& address : candidates) probe->add_candidates(address);
  probe->set_port(master_port_);
  probe->set_nonce(nonce_);
  probe->set_timeout_ms(to_ms(time));
  for (Node* node : planned) {
    if (node != planned.front()) node->link->send(request);
  }
  const auto has_answered = [&planned](const Node* node) {
    return node == planned.front() || node->probe || node->is_lost;
  };
  // The agents keep the time. Question and answer may be late; beyond the lease a node is lost.
  const SteadyTime deadline = std::min(
      now + time + options_.lease, std::max(start_deadline_, now + time + std::chrono::seconds(1)));
  while (!is_stopping() && std::chrono::steady_clock::now() < deadline &&
         !std::all_of(planned.begin(), planned.end(), has_answered)) {
    co_await wait_for_change(deadline);
  }
  co_return !is_stopping();
}

void Job::take_fabric(const FabricDecision& decision) {
  for (const std::string& text : decision.warnings) log(LogLevel::kWarning, "{}", text);
  master_addr_ = decision.master_addr;
  const std::vector<Node*> planned = planned_nodes();
  for (std::size_t i = 0; i < planned.size(); ++i) {
    planned[i]->fabric = decision.nodes.at(i);
    log(LogLevel::kDebug, "{}: {} on {}", planned[i]->host.label(), planned[i]->fabric.address,
        planned[i]->fabric.interface.empty() ? "an unknown interface"
                                             : planned[i]->fabric.interface);
  }
  log(LogLevel::kInfo, "MASTER_ADDR {} MASTER_PORT {}", master_addr_, master_port_);
}

}  // namespace hvd
