#include "agent/worker_binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace hvd {
namespace {

namespace fs = std::filesystem;
namespace v1 = hvdrun::v1;
using testing::ElementsAre;
using testing::SizeIs;

// Two sockets with two cores of two threads each, and a GPU at either.
class Machine : public testing::Test {
 protected:
  Machine() {
    write("nodes/node0/cpulist", "0-1,4-5\n");
    write("nodes/node1/cpulist", "2-3,6-7\n");
    write("nodes/possible", "0-1\n");
    for (int cpu = 0; cpu < 8; ++cpu) {
      write("cpus/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
            std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4) + "\n");
    }
    write("gpus/0000:3b:00.0/information", "Model: \t X\nGPU UUID: \t GPU-aa11\nBus Type: PCIe\n");
    write("gpus/0000:af:00.0/information", "Model: \t X\nGPU UUID: \t GPU-bb22\n");
    write("pci/0000:3b:00.0/numa_node", "1\n");
    write("pci/0000:af:00.0/numa_node", "0\n");
  }
  ~Machine() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  Topology read(const std::vector<int>& allowed = {0, 1, 2, 3, 4, 5, 6, 7}) const {
    const std::string root = root_.string();
    return read_topology(allowed, {root + "/nodes", root + "/cpus", root + "/pci", root + "/gpus"});
  }

  fs::path root_ = fs::temp_directory_path() / ("hvd_machine_" + std::to_string(getpid()));
};

TEST_F(Machine, IsReadAsFarAsItMayBeUsed) {
  const Topology all = read();
  ASSERT_THAT(all.nodes, SizeIs(2));
  EXPECT_THAT(all.nodes[1].cores, ElementsAre(ElementsAre(2, 6), ElementsAre(3, 7)));
  ASSERT_THAT(all.gpus, SizeIs(2));
  EXPECT_EQ(all.gpus[0].uuid, "GPU-aa11");
  EXPECT_EQ(all.gpus[0].numa_node, 1);
  const Topology some = read({1, 4, 5});
  EXPECT_THAT(some.nodes[0].cores, ElementsAre(ElementsAre(1, 5), ElementsAre(4)));
  EXPECT_THAT(some.nodes[1].cores, SizeIs(0));
}

TEST_F(Machine, WithoutNumaIsOneNode) {
  fs::remove_all(root_ / "nodes");
  write("pci/0000:3b:00.0/numa_node", "-1\n");
  const Topology plain = read({0, 1, 4, 5});
  ASSERT_THAT(plain.nodes, SizeIs(1));
  EXPECT_THAT(plain.nodes[0].cores, SizeIs(2));
  EXPECT_EQ(plain.gpus[0].numa_node, std::nullopt);
}

TEST_F(Machine, GpuOfARankIsWhatCudaVisibleDevicesSays) {
  const auto gpus = read().gpus;
  const auto bus_of = [&gpus](const char* visible, std::size_t rank) {
    const std::string value = visible != nullptr ? visible : "";
    const GpuPlace* gpu = gpu_of_rank(gpus, visible != nullptr ? &value : nullptr, rank);
    return gpu != nullptr ? gpu->bus_id : "none";
  };
  EXPECT_EQ(bus_of(nullptr, 1), "0000:af:00.0");
  EXPECT_EQ(bus_of(nullptr, 2), "none");
  EXPECT_EQ(bus_of("1,0", 0), "0000:af:00.0");
  EXPECT_EQ(bus_of("1,0", 2), "none");
  EXPECT_EQ(bus_of("1", 5), "0000:af:00.0");
  EXPECT_EQ(bus_of("GPU-bb22,GPU-aa11", 1), "0000:3b:00.0");
  EXPECT_EQ(bus_of("MIG-4f7e", 0), "none");
  EXPECT_EQ(bus_of("", 0), "none");
  EXPECT_EQ(bus_of("7", 0), "none");
}

TEST_F(Machine, WorkersAreBoundNearTheirGpusAndThatIsTold) {
  std::vector<v1::ShimSpawn> parts(2);
  for (std::uint32_t local = 0; local < 2; ++local) {
    v1::WorkerSpec* worker = parts[1 - local].add_workers();  // in whatever part
    worker->set_rank(10 + local);
    worker->set_local_rank(local);
  }
  const auto texts = bind_workers(parts, BindMode::kCore, read());
  EXPECT_EQ(texts.at(10), "CPUs 2-3,6-7, memory of NUMA node 1, GPU 0000:3b:00.0");
  EXPECT_EQ(texts.at(11), "CPUs 0-1,4-5, memory of NUMA node 0, GPU 0000:af:00.0");
  EXPECT_THAT(parts[1].workers(0).cpus(), ElementsAre(2, 3, 6, 7));
  EXPECT_EQ(parts[1].workers(0).memory_node(), 2U);
  std::vector<v1::ShimSpawn> free(1);
  free[0].add_workers();
  EXPECT_EQ(bind_workers(free, BindMode::kNone, read()).at(0),
            "not bound, CPUs 0-7, GPU 0000:3b:00.0");
  EXPECT_EQ(free[0].workers(0).memory_node(), 0U);
  EXPECT_EQ(free[0].workers(0).cpus_size(), 0);
}

}  // namespace
}  // namespace hvd
