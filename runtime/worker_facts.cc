#include "runtime/worker_facts.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/stable_hash.h"
#include "runtime/nccl_variables.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;

// 0 means "no plan".
std::uint64_t hash_of(const std::string& text) {
  if (text.empty()) return 0;
  const std::uint64_t hash = stable_hash(text);
  return hash == 0 ? 1 : hash;
}

std::vector<std::string> configuration_texts(const EnvList& environment) {
  std::vector<std::string> texts;
  for (const std::string& path : nccl_configuration_files(environment)) {
    std::ifstream file(path);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

// "4: ACTIVE" in the state of one of its ports.
bool is_usable(const fs::directory_entry& device) {
  std::error_code none;
  const fs::directory_iterator ports(device.path() / "ports", none);
  if (none) return false;
  return std::any_of(begin(ports), end(ports), [](const fs::directory_entry& port) {
    std::string state;
    std::getline(std::ifstream(port.path() / "state"), state);
    return state.find("ACTIVE") != std::string::npos;
  });
}

}  // namespace

std::uint32_t count_rdma_devices(const std::string& sysfs) {
  std::error_code none;
  const fs::directory_iterator devices(sysfs + "/class/infiniband", none);
  if (none) return 0;
  return static_cast<std::uint32_t>(std::count_if(begin(devices), end(devices), is_usable));
}

hvdrun::v1::Registration worker_facts(const Place& place, std::uint32_t generation,
                                      const InitOptions& options, const EnvList& environment,
                                      const DescriptorLimits& limits) {
  hvdrun::v1::Registration facts;
  facts.set_generation(generation);
  facts.set_rank(static_cast<std::uint32_t>(place.rank));
  facts.set_size(static_cast<std::uint32_t>(place.size));
  facts.set_local_rank(static_cast<std::uint32_t>(place.local_rank));
  facts.set_host(place.host);
  facts.set_pid(getpid());
  facts.set_runtime_version(HVDRUN_VERSION);
  facts.set_torch_version(options.torch_version);
  facts.set_may_share_gpu(allows_shared_gpu(environment));
  facts.set_plan(options.plan);
  facts.set_plan_hash(hash_of(options.plan));
  for (std::string& setting : nccl_settings(environment, configuration_texts(environment))) {
    facts.add_nccl_settings(std::move(setting));
  }
  facts.set_num_rdma_devices(
      count_rdma_devices(find_env(environment, "HVDRUN_SYSFS").value_or("/sys")));
  facts.set_nofile_soft(limits.soft);
  facts.set_nofile_hard(limits.hard);
  return facts;
}

}  // namespace hvd
