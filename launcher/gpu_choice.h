// Which GPUs the ranks of a node see: those that the host list selects, or else the node's own; all
// of them each, or one each (--one-gpu-per-rank). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/hostlist.h"

namespace hvd {

// What is known of a node's GPUs once it has said hello.
struct NodeGpus {
  std::uint32_t num_present = 0;         // 0: none, or no driver
  std::optional<std::string> inherited;  // CUDA_VISIBLE_DEVICES as its ranks would get it
};

// The devices that CUDA takes from a value of CUDA_VISIBLE_DEVICES: up to the first token that is
// none ("0,-1,1" is one device), indices, GPU- and MIG- ids untouched. Twice the same one is an
// error.
[[nodiscard]] Result<std::vector<std::string>> visible_devices(std::string_view value);

// The devices for --one-gpu-per-rank, one for each local rank; an error (exit 2) names the host if
// there are fewer than `num_ranks`. After check_selection().
[[nodiscard]] Result<std::vector<std::string>> one_gpu_each(const HostSpec& host,
                                                            const NodeGpus& gpus,
                                                            std::size_t num_ranks);

// A GPU is selected by a number that the node does not have, or the list that the ranks inherit has
// one twice, of which CUDA would show them none: exit 2. Without a known number of GPUs every
// selection passes.
[[nodiscard]] Result<void> check_selection(const HostSpec& host, const NodeGpus& gpus);

// The variables of a node's ranks for a selection, and of one rank that sees one GPU only:
// LOCAL_RANK is then 0, as with torchrun's --virtual-local-rank, because it indexes what is
// visible.
[[nodiscard]] EnvList selected_gpus_env(const HostSpec& host);
[[nodiscard]] EnvList one_gpu_env(const std::string& gpu);

// What a job asks of an agent that books GPUs, before that has told anything: "all", "none" or
// numbers. Without a choice of the user the ranks have as many as they are, from the first on.
// `num_ranks` is 0 as long as nobody knows.
[[nodiscard]] std::string gpu_claim(const HostSpec& host,
                                    const std::optional<std::string>& inherited,
                                    std::size_t num_ranks);

}  // namespace hvd
