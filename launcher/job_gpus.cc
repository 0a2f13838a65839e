// The GPUs of a job's ranks: what the host list and --one-gpu-per-rank say, held against what the
// nodes have told.
#include "launcher/gpu_choice.h"
#include "launcher/job.h"

namespace hvd {

// False: a cause stands.
bool Job::settle_gpus() {
  for (const auto& node : nodes_) {
    NodeGpus gpus{node->hello->num_gpus(), std::nullopt};
    if (node->hello->has_visible_gpus()) gpus.inherited = node->hello->visible_gpus();
    if (const auto fits = check_selection(node->host, gpus); !fits) {
      fail_start(fits.error());
      return false;
    }
    if (!options_.is_one_gpu_per_rank) continue;
    auto devices = one_gpu_each(node->host, gpus, node->ranks.size());
    if (!devices) {
      fail_start(devices.error());
      return false;
    }
    node->gpus = std::move(*devices);
  }
  return true;
}

std::string Job::gpu_claim_of(const Node& node) const {
  auto visible = find_env(options_.env, "CUDA_VISIBLE_DEVICES");
  if (!visible) {
    visible = find_env(filter_launcher_env(environment_, options_.env_request.rules),
                       "CUDA_VISIBLE_DEVICES");
  }
  return gpu_claim(node.host, visible, node.ranks.size());
}

}  // namespace hvd
