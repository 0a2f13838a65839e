#include "agent/cpu_binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>

#include "base/blanks.h"
#include "base/parse_number.h"

namespace hvd {
namespace {

constexpr int kMostCpus = 65536;

std::size_t num_cpus(const NumaNode& node) {
  std::size_t count = 0;
  for (const auto& core : node.cores) count += core.size();
  return count;
}

// Position i of `count` on a line on which each node is as long as it has CPUs.
const NumaNode* node_in_block(const std::vector<const NumaNode*>& nodes, std::size_t i,
                              std::size_t count) {
  std::size_t total = 0;
  for (const NumaNode* node : nodes) total += num_cpus(*node);
  std::size_t at = i * total / count;
  for (const NumaNode* node : nodes) {
    if (at < num_cpus(*node)) return node;
    at -= num_cpus(*node);
  }
  return nodes.back();
}

const NumaNode* find_node(const std::vector<const NumaNode*>& nodes, std::optional<int> id) {
  const auto found = std::find_if(nodes.begin(), nodes.end(),
                                  [id](const NumaNode* node) { return id == node->id; });
  return found == nodes.end() ? nullptr : *found;
}

std::vector<const NumaNode*> place_ranks(const std::vector<const NumaNode*>& nodes,
                                         const std::vector<std::optional<int>>& wanted) {
  std::vector<const NumaNode*> places;
  for (const auto& id : wanted) places.push_back(find_node(nodes, id));
  const auto num_free = static_cast<std::size_t>(std::count(places.begin(), places.end(), nullptr));
  std::size_t next = 0;
  for (const NumaNode*& place : places) {
    if (place == nullptr) place = node_in_block(nodes, next++, num_free);
  }
  return places;
}

// Block `i` of `count` of the node's cores; at least one core.
std::vector<int> cpus_of_block(const NumaNode& node, std::size_t i, std::size_t count) {
  const std::size_t num_cores = node.cores.size();
  std::size_t begin = i * num_cores / count;
  std::size_t end = (i + 1) * num_cores / count;
  if (begin == end) end = begin + 1;
  std::vector<int> cpus;
  for (std::size_t core = begin; core < end; ++core) {
    cpus.insert(cpus.end(), node.cores[core].begin(), node.cores[core].end());
  }
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

}  // namespace

BindMode parse_bind_mode(std::string_view text) {
  if (text == "numa") return BindMode::kNuma;
  return text == "core" ? BindMode::kCore : BindMode::kNone;
}

std::vector<Binding> decide_bindings(const std::vector<NumaNode>& nodes, BindMode mode,
                                     const std::vector<std::optional<int>>& wanted) {
  std::vector<const NumaNode*> usable;
  for (const NumaNode& node : nodes) {
    if (!node.cores.empty()) usable.push_back(&node);
  }
  std::vector<Binding> bindings(wanted.size());
  if (mode == BindMode::kNone || usable.empty()) return bindings;
  const auto places = place_ranks(usable, wanted);
  std::map<const NumaNode*, std::size_t> num_ranks;
  for (const NumaNode* place : places) ++num_ranks[place];
  std::map<const NumaNode*, std::size_t> next;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const NumaNode* place = places[rank];
    const bool is_shared_out = mode == BindMode::kCore;
    bindings[rank].numa_node = place->id;
    bindings[rank].cpus = is_shared_out ? cpus_of_block(*place, next[place]++, num_ranks[place])
                                        : cpus_of_block(*place, 0, 1);
  }
  return bindings;
}

std::string format_cpus(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t end = i + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text +=
        end - i == 1 ? fmt::format("{}", cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[end - 1]);
    i = end;
  }
  return text;
}

std::vector<int> parse_cpus(std::string_view list) {
  std::vector<int> cpus;
  list = strip_blanks(list);
  for (std::size_t at = 0; at < list.size();) {
    const auto comma = std::min(list.find(',', at), list.size());
    const auto item = list.substr(at, comma - at);
    const auto dash = item.find('-');
    const auto low = parse_number<int>(item.substr(0, dash));
    const auto high =
        dash == std::string_view::npos ? low : parse_number<int>(item.substr(dash + 1));
    if (!low || !high || *low < 0 || *high < *low || *high >= kMostCpus) return {};
    for (int cpu = *low; cpu <= *high; ++cpu) cpus.push_back(cpu);
    at = comma + 1;
  }
  return cpus;
}

}  // namespace hvd
