#include "launcher/pmi_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace hvd {
namespace {

constexpr std::size_t kMaxMapping = 1023;  // of 1024 with the end of a C string
constexpr const char* kDescriptor = "3";

// EACH consecutive ranks on each of NUM nodes from FIRST on.
struct Block {
  std::uint32_t first = 0;
  std::uint32_t num = 1;
  std::uint32_t each = 1;
  friend bool operator==(const Block&, const Block&) = default;
};

// A block for each run of ranks on one node.
std::vector<Block> runs_of(const std::vector<std::uint32_t>& node_of_rank) {
  std::vector<Block> runs;
  for (const std::uint32_t node : node_of_rank) {
    if (!runs.empty() && runs.back().first == node) {
      ++runs.back().each;
    } else {
      runs.push_back({node, 1, 1});
    }
  }
  return runs;
}

std::vector<Block> joined(const std::vector<Block>& runs) {
  std::vector<Block> blocks;
  for (const Block& run : runs) {
    const bool goes_on = !blocks.empty() && blocks.back().each == run.each &&
                         blocks.back().first + blocks.back().num == run.first;
    if (goes_on) {
      ++blocks.back().num;
    } else {
      blocks.push_back(run);
    }
  }
  return blocks;
}

// Without what repeats the first block to the end: ranks in a cycle over the nodes.
void drop_repeats(std::vector<Block>& blocks) {
  const auto is_first = [&blocks](const Block& block) { return block == blocks.front(); };
  if (std::all_of(blocks.begin(), blocks.end(), is_first) && !blocks.empty()) blocks.resize(1);
}

}  // namespace

EnvList pmi_env(const RankPlace& place) {
  const auto text = [](std::uint32_t value) { return fmt::format_int(value).str(); };
  return {
      {"PMI_FD", kDescriptor},
      {"PMI_RANK", text(place.rank)},
      {"PMI_SIZE", text(place.size)},
      {"MPI_LOCALRANKID", text(place.local_rank)},
      {"MPI_LOCALNRANKS", text(place.local_size)},
  };
}

EnvList pmi_env_if_unset(std::uint32_t num_nodes, bool has_rdma, const std::string& interface) {
  if (num_nodes <= 1 || has_rdma || interface.empty()) return {};
  return {{"UCX_NET_DEVICES", interface}};
}

std::string process_mapping(const std::vector<std::uint32_t>& node_of_rank) {
  std::vector<Block> blocks = joined(runs_of(node_of_rank));
  drop_repeats(blocks);
  std::string text = "(vector";
  for (const Block& block : blocks) {
    text += fmt::format(",({},{},{})", block.first, block.num, block.each);
  }
  text += ")";
  return text.size() <= kMaxMapping ? text : std::string();
}

v1::PmiWorld pmi_world(const Plan& plan) {
  std::vector<std::uint32_t> node_of_rank;
  for (const RankPlace& place : plan.ranks) node_of_rank.push_back(place.node);
  const std::set<std::uint32_t> nodes(node_of_rank.begin(), node_of_rank.end());
  v1::PmiWorld world;
  world.set_size(static_cast<std::uint32_t>(plan.ranks.size()));
  world.set_num_nodes(static_cast<std::uint32_t>(nodes.size()));
  world.set_process_mapping(process_mapping(node_of_rank));
  return world;
}

}  // namespace hvd
