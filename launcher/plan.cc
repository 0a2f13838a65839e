#include "launcher/plan.h"

#include <algorithm>

#include "base/plural.h"

namespace hvd {
namespace {

constexpr std::uint64_t kMostRanks = 1U << 20U;
constexpr std::size_t kMostNodesInNote = 8;

// Slots up to the first host that does not know its own; `is_whole` if there is none such.
struct KnownSlots {
  std::uint64_t count = 0;
  bool is_whole = true;
};

KnownSlots count_known_slots(const std::vector<HostSpec>& hosts) {
  KnownSlots known;
  for (const HostSpec& host : hosts) {
    if (!host.slots) {
      known.is_whole = false;
      break;
    }
    known.count += *host.slots;
  }
  return known;
}

Result<std::uint32_t> decide_world_size(const std::vector<HostSpec>& hosts,
                                        std::optional<std::uint32_t> np, std::string_view source,
                                        RankOrder order) {
  const KnownSlots known = count_known_slots(hosts);
  if (!can_plan_without_hellos(hosts, np, order)) {
    return make_error(
        "the number of GPUs of some hosts is not known; write their slots, as in {}:8",
        hosts.front().label());
  }
  if (np && *np > known.count) {
    const std::string where =
        source.empty() ? fmt::format("-H {}", format_hosts(hosts)) : std::string(source);
    return make_error(ExitCode::kUsage,
                      "-np {} is more than the {} of {}; lower -np or give hosts more slots", *np,
                      counted(known.count, "slot"), where);
  }
  const std::uint64_t size = np ? *np : known.count;
  if (size == 0 || size > kMostRanks) {
    return make_error(ExitCode::kUsage, "a job of {} ranks cannot be run; use 1 to {} ranks", size,
                      kMostRanks);
  }
  return static_cast<std::uint32_t>(size);
}

std::vector<PlanNode> fill_in_blocks(const std::vector<HostSpec>& hosts, std::uint32_t size) {
  std::vector<PlanNode> nodes;
  std::uint32_t next = 0;
  for (const HostSpec& host : hosts) {
    const std::uint32_t end = next + std::min(host.slots.value_or(0), size - next);
    if (end == next) continue;
    PlanNode& node = nodes.emplace_back(PlanNode{host, {}});
    while (next < end) node.ranks.push_back(next++);
  }
  return nodes;
}

// In turn, leaving out hosts that are full. All slots are known.
std::vector<PlanNode> fill_in_turn(const std::vector<HostSpec>& hosts, std::uint32_t size) {
  std::vector<PlanNode> nodes;
  for (const HostSpec& host : hosts) nodes.push_back({host, {}});
  std::uint32_t next = 0;
  for (std::uint32_t local = 0; next < size; ++local) {
    for (PlanNode& node : nodes) {
      if (next < size && local < *node.host.slots) node.ranks.push_back(next++);
    }
  }
  std::erase_if(nodes, [](const PlanNode& node) { return node.ranks.empty(); });
  return nodes;
}

// How many nodes have a local rank l, for each l.
std::vector<std::uint32_t> count_cross_sizes(const std::vector<PlanNode>& nodes) {
  std::vector<std::uint32_t> sizes;
  for (const PlanNode& node : nodes) {
    if (node.ranks.size() > sizes.size()) sizes.resize(node.ranks.size(), 0);
    for (std::size_t local = 0; local < node.ranks.size(); ++local) ++sizes[local];
  }
  return sizes;
}

std::vector<RankPlace> place_ranks(const std::vector<PlanNode>& nodes, std::uint32_t size) {
  const auto cross_sizes = count_cross_sizes(nodes);
  std::vector<std::uint32_t> num_before(cross_sizes.size(), 0);
  std::vector<RankPlace> ranks(size);
  for (std::uint32_t index = 0; index < nodes.size(); ++index) {
    const PlanNode& node = nodes[index];
    for (std::uint32_t local = 0; local < node.ranks.size(); ++local) {
      const std::uint32_t rank = node.ranks[local];
      ranks[rank] = {.rank = rank,
                     .size = size,
                     .local_rank = local,
                     .local_size = static_cast<std::uint32_t>(node.ranks.size()),
                     .cross_rank = num_before[local]++,
                     .cross_size = cross_sizes[local],
                     .node = index,
                     .num_nodes = static_cast<std::uint32_t>(nodes.size()),
                     .host = node.host.label()};
    }
  }
  return ranks;
}

template <typename List, typename Text>
std::string join_for_note(const List& list, std::size_t first, Text text) {
  std::string result;
  for (std::size_t i = first; i < list.size(); ++i) {
    if (i - first == kMostNodesInNote) return result + fmt::format(", ... ({} hosts)", list.size());
    result += (i == first ? "" : ", ") + text(list[i]);
  }
  return result;
}

std::vector<std::string> make_notes(const std::vector<HostSpec>& hosts, const Plan& plan) {
  const KnownSlots known = count_known_slots(hosts);
  std::vector<std::string> notes;
  if (known.count == plan.ranks.size() && known.is_whole) return notes;
  const auto used = join_for_note(plan.nodes, 0, [](const PlanNode& node) {
    return fmt::format("{} x{}", node.host.label(), node.ranks.size());
  });
  notes.push_back(known.is_whole
                      ? fmt::format("-np {} of {} slots: {}", plan.ranks.size(), known.count, used)
                      : fmt::format("-np {}: {}", plan.ranks.size(), used));
  if (plan.nodes.size() < hosts.size()) {
    const auto unused =
        join_for_note(hosts, plan.nodes.size(), [](const HostSpec& host) { return host.label(); });
    notes.push_back(fmt::format("left out because no rank falls to them: {}", unused));
  }
  return notes;
}

}  // namespace

bool can_plan_without_hellos(const std::vector<HostSpec>& hosts, std::optional<std::uint32_t> np,
                             RankOrder order) {
  const KnownSlots known = count_known_slots(hosts);
  return known.is_whole || (order == RankOrder::kBlock && np && *np <= known.count);
}

Result<Plan> make_plan(const std::vector<HostSpec>& hosts, std::optional<std::uint32_t> np,
                       std::string_view source, RankOrder order) {
  if (hosts.empty()) return make_error(ExitCode::kUsage, "no host is given; name one with -H");
  const auto size = decide_world_size(hosts, np, source, order);
  if (!size) return tl::unexpected(size.error());
  Plan plan;
  plan.nodes =
      order == RankOrder::kBlock ? fill_in_blocks(hosts, *size) : fill_in_turn(hosts, *size);
  plan.ranks = place_ranks(plan.nodes, *size);
  plan.notes = make_notes(hosts, plan);
  plan.leaves_slots = count_known_slots(hosts).is_whole && !plan.notes.empty();
  return plan;
}

std::vector<HostSpec> with_gpu_counts(std::vector<HostSpec> hosts,
                                      const std::vector<std::uint32_t>& num_gpus) {
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i].slots) continue;
    const std::uint32_t gpus = i < num_gpus.size() ? num_gpus[i] : 0;
    hosts[i].slots = std::max(gpus, 1U);
  }
  return hosts;
}

}  // namespace hvd
