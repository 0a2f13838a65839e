#include "agent/cpu_topology.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/blanks.h"
#include "base/parse_number.h"
#include "base/read_file.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;

constexpr int kLargestSet = 8192;

std::vector<int> own_cpus() {
  std::vector<int> cpus;
  cpu_set_t* set = CPU_ALLOC(kLargestSet);
  if (set == nullptr) return cpus;
  const std::size_t size = CPU_ALLOC_SIZE(kLargestSet);
  CPU_ZERO_S(size, set);
  if (sched_getaffinity(0, size, set) == 0) {
    for (int cpu = 0; cpu < kLargestSet; ++cpu) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), size, set)) cpus.push_back(cpu);
    }
  }
  CPU_FREE(set);
  return cpus;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The CPUs that are threads of one core stand together, in the place of the first.
std::vector<std::vector<int>> cores_of(const std::vector<int>& cpus, const TopologyPaths& paths) {
  const std::set<int> wanted(cpus.begin(), cpus.end());
  std::set<int> seen;
  std::vector<std::vector<int>> cores;
  for (const int cpu : cpus) {
    if (seen.contains(cpu)) continue;
    std::vector<int> core = {cpu};
    const std::string file = fmt::format("{}/cpu{}/topology/thread_siblings_list", paths.cpus, cpu);
    for (const int sibling : parse_cpus(read_first_line(file))) {
      if (sibling != cpu && wanted.contains(sibling)) core.push_back(sibling);
    }
    seen.insert(core.begin(), core.end());
    cores.push_back(std::move(core));
  }
  return cores;
}

std::vector<NumaNode> read_nodes(const std::vector<int>& allowed, const TopologyPaths& paths) {
  const std::set<int> usable(allowed.begin(), allowed.end());
  std::vector<NumaNode> nodes;
  for (const std::string& name : names_in(paths.nodes)) {
    const auto id = name.starts_with("node") ? parse_number<int>(name.substr(4)) : std::nullopt;
    if (!id) continue;
    std::vector<int> cpus = parse_cpus(read_first_line(paths.nodes + "/" + name + "/cpulist"));
    std::erase_if(cpus, [&usable](int cpu) { return !usable.contains(cpu); });
    nodes.push_back({*id, cores_of(cpus, paths)});
  }
  std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  if (nodes.empty()) nodes.push_back({0, cores_of(allowed, paths)});
  return nodes;
}

// "GPU UUID: \t GPU-4f7e..." of the driver's file.
std::string uuid_in(const std::string& information) {
  constexpr std::string_view kKey = "GPU UUID:";
  const auto at = information.find(kKey);
  if (at == std::string::npos) return {};
  const auto end = std::min(information.find('\n', at), information.size());
  const auto begin = at + kKey.size();
  return std::string(strip_blanks(std::string_view(information).substr(begin, end - begin)));
}

std::vector<GpuPlace> read_gpus(const TopologyPaths& paths) {
  std::vector<GpuPlace> gpus;
  for (const std::string& bus_id : names_in(paths.gpus)) {
    GpuPlace gpu{bus_id, uuid_in(read_small_file(paths.gpus + "/" + bus_id + "/information")), {}};
    const auto node = parse_number<int>(read_first_line(paths.pci + "/" + bus_id + "/numa_node"));
    if (node && *node >= 0) gpu.numa_node = *node;
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

std::vector<std::string_view> tokens_of(std::string_view visible) {
  std::vector<std::string_view> tokens;
  for (std::size_t at = 0; at <= visible.size();) {
    const auto comma = std::min(visible.find(',', at), visible.size());
    tokens.push_back(strip_blanks(visible.substr(at, comma - at)));
    at = comma + 1;
  }
  return tokens;
}

}  // namespace

Topology read_topology(const std::vector<int>& allowed, const TopologyPaths& paths) {
  return {read_nodes(allowed, paths), read_gpus(paths)};
}

Topology read_topology() { return read_topology(own_cpus(), {}); }

const GpuPlace* gpu_of_rank(const std::vector<GpuPlace>& gpus, const std::string* visible,
                            std::size_t local_rank) {
  if (visible == nullptr) return local_rank < gpus.size() ? &gpus[local_rank] : nullptr;
  const auto tokens = tokens_of(*visible);
  const std::size_t place = tokens.size() == 1 ? 0 : local_rank;
  if (place >= tokens.size() || tokens[place].empty()) return nullptr;
  const std::string_view token = tokens[place];
  if (const auto index = parse_number<std::size_t>(token)) {
    return *index < gpus.size() ? &gpus[*index] : nullptr;
  }
  // CUDA takes the beginning of a UUID, too.
  const auto found = std::find_if(gpus.begin(), gpus.end(), [token](const GpuPlace& gpu) {
    return gpu.uuid.starts_with(token);
  });
  return found == gpus.end() ? nullptr : &*found;
}

}  // namespace hvd
