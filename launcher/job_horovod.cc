// Horovod's contract: where its ranks find their store, and what node 0's agent is told of it.
#include "base/log.h"
#include "launcher/env_message.h"
#include "launcher/horovod_contract.h"
#include "launcher/job.h"

namespace hvd {

// After the addresses are settled. Without a store the ranks of other libraries start all the same.
void Job::settle_horovod(const std::vector<FabricNode>& facts, const FabricCandidates& candidates,
                         const FabricDecision& decision,
                         const std::vector<std::optional<v1::FabricProbeReply>>& probes) {
  const FabricNode& first = facts.front();
  const v1::FabricListenReply& listening = first.hello.fabric_listen();
  if (listening.horovod_port() == 0) {
    log(LogLevel::kInfo, "no store for Horovod's ranks: {}: {}", first.host,
        listening.horovod_error().empty() ? "its agent has none" : listening.horovod_error());
    return;
  }
  horovod_address_ = horovod_address(facts, candidates, decision, probes);
  if (horovod_address_.empty()) {
    log(LogLevel::kInfo,
        "no store for Horovod's ranks: they need IPv4, and {} has no IPv4 address that all nodes "
        "reach; HOROVOD_GLOO_* and HOROVOD_CONTROLLER are not set",
        first.host);
    return;
  }
  horovod_port_ = listening.horovod_port();
  horovod_store_ = horovod_store(plan_->ranks, first, horovod_address_);
  log(LogLevel::kDebug, "Horovod's store: {}:{}", horovod_address_, horovod_port_);
}

void Job::add_horovod(const Node& node, v1::Spawn& spawn) const {
  if (horovod_address_.empty()) return;
  add_env(horovod_env(horovod_address_, horovod_port_), spawn.mutable_env());
  add_env(horovod_env_if_unset(node.fabric.interface), spawn.mutable_env_if_unset());
  if (node.index == planned_nodes().front()->index) *spawn.mutable_horovod_store() = horovod_store_;
}

}  // namespace hvd
