#include "agent/worker_binding.h"

#include <fmt/format.h>

#include <algorithm>

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

std::vector<v1::WorkerSpec*> workers_by_local_rank(std::vector<v1::ShimSpawn>& parts) {
  std::vector<v1::WorkerSpec*> workers;
  for (v1::ShimSpawn& part : parts) {
    for (v1::WorkerSpec& worker : *part.mutable_workers()) workers.push_back(&worker);
  }
  std::stable_sort(workers.begin(), workers.end(),
                   [](const auto* a, const auto* b) { return a->local_rank() < b->local_rank(); });
  return workers;
}

const GpuPlace* gpu_of(const v1::WorkerSpec& worker, const Topology& topology) {
  const auto found = std::find_if(
      worker.env().begin(), worker.env().end(),
      [](const v1::EnvVar& variable) { return variable.name() == "CUDA_VISIBLE_DEVICES"; });
  const std::string* visible = found == worker.env().end() ? nullptr : &found->value();
  return gpu_of_rank(topology.gpus, visible, worker.local_rank());
}

std::string describe(const Binding& binding, const GpuPlace* gpu, const Topology& topology) {
  std::string text;
  if (binding.cpus.empty()) {
    std::vector<int> all;
    for (const NumaNode& node : topology.nodes) {
      for (const auto& core : node.cores) all.insert(all.end(), core.begin(), core.end());
    }
    std::sort(all.begin(), all.end());
    text = fmt::format("not bound, CPUs {}", format_cpus(all));
  } else {
    text = fmt::format("CPUs {}, memory of NUMA node {}", format_cpus(binding.cpus),
                       binding.numa_node);
  }
  return gpu == nullptr ? text : fmt::format("{}, GPU {}", text, gpu->bus_id);
}

}  // namespace

std::map<std::uint32_t, std::string> bind_workers(std::vector<v1::ShimSpawn>& parts, BindMode mode,
                                                  const Topology& topology) {
  const auto workers = workers_by_local_rank(parts);
  std::vector<const GpuPlace*> gpus;
  std::vector<std::optional<int>> wanted;
  for (const v1::WorkerSpec* worker : workers) {
    gpus.push_back(gpu_of(*worker, topology));
    wanted.push_back(gpus.back() == nullptr ? std::nullopt : gpus.back()->numa_node);
  }
  const auto bindings = decide_bindings(topology.nodes, mode, wanted);
  std::map<std::uint32_t, std::string> texts;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    for (const int cpu : bindings[i].cpus) workers[i]->add_cpus(static_cast<std::uint32_t>(cpu));
    workers[i]->set_memory_node(static_cast<std::uint32_t>(bindings[i].numa_node + 1));
    texts[workers[i]->rank()] = describe(bindings[i], gpus[i], topology);
  }
  return texts;
}

}  // namespace hvd
