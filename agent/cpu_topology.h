// The machine as --bind sees it: NUMA nodes with their cores, as far as the agent may use them, and
// the GPUs of NVIDIA's driver. Reads only /sys and /proc; what is missing there is left out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/cpu_binding.h"

namespace hvd {

struct GpuPlace {
  std::string bus_id;  // "0000:3b:00.0"
  std::string uuid;    // "GPU-..."
  std::optional<int> numa_node;
};

struct Topology {
  std::vector<NumaNode> nodes;
  std::vector<GpuPlace> gpus;  // by bus id, as CUDA numbers equal ones
};

// Folders of the kernel's own trees, replaceable for tests.
struct TopologyPaths {
  std::string nodes = "/sys/devices/system/node";
  std::string cpus = "/sys/devices/system/cpu";
  std::string pci = "/sys/bus/pci/devices";
  std::string gpus = "/proc/driver/nvidia/gpus";
};

// `allowed`: the CPUs that may be used. Where the kernel tells of no NUMA nodes there is one, 0.
[[nodiscard]] Topology read_topology(const std::vector<int>& allowed, const TopologyPaths& paths);
// With the CPUs of this process.
[[nodiscard]] Topology read_topology();

// The GPU of a local rank: the entry of that number in CUDA_VISIBLE_DEVICES, or the only one in it;
// without the variable (nullptr) the GPU of that number. nullptr: none, or it is not known (MIG).
[[nodiscard]] const GpuPlace* gpu_of_rank(const std::vector<GpuPlace>& gpus,
                                          const std::string* visible, std::size_t local_rank);

}  // namespace hvd
