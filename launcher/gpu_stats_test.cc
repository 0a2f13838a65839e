#include "launcher/gpu_stats.h"

#include <gmock/gmock.h>

#include <vector>

namespace hvd {
namespace {

struct Sample {
  std::uint32_t index;
  int utilization;  // -1: not known
  int used;
};

v1::GpuSummary summary(const std::vector<Sample>& samples) {
  v1::GpuSummary result;
  for (const Sample& it : samples) {
    v1::GpuSample& gpu = *result.add_gpus();
    gpu.set_index(it.index);
    gpu.set_has_utilization(it.utilization >= 0);
    if (it.utilization >= 0) gpu.set_utilization(static_cast<std::uint32_t>(it.utilization));
    gpu.set_has_memory(it.used >= 0);
    if (it.used >= 0) gpu.set_used_mib(static_cast<std::uint64_t>(it.used));
    gpu.set_total_mib(81920);
  }
  return result;
}

TEST(GpuStats, LowestAndMeanOfTheLastSamplesAndOfTheRun) {
  GpuStats stats;
  EXPECT_EQ(stats.text_now(), "");
  EXPECT_EQ(stats.text_over_run(), "");
  stats.take(0, "node1", summary({{0, 10, 1024}, {1, 90, 2048}}));
  stats.take(1, "node2", summary({{0, 80, 512}}));
  stats.take(0, "node1", summary({{0, 100, 20480}}));
  EXPECT_EQ(stats.text_now(),
            "3 GPUs: utilisation lowest 80 % (node2 GPU 0), mean 90 %; memory lowest 512 MiB "
            "(node2 GPU 0), mean 7.5 GiB");
  EXPECT_EQ(stats.text_over_run(),
            "3 GPUs: utilisation lowest 10 % (node1 GPU 0), mean 75 %; memory lowest 512 MiB "
            "(node2 GPU 0), mean 4.3 GiB");
  const auto all = stats.all();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].num_samples, 2u);
  EXPECT_EQ(all[0].utilization_lowest, 10u);
  EXPECT_EQ(all[0].utilization_mean, 55.0);
  EXPECT_EQ(all[0].memory_now, 20480u);
  EXPECT_EQ(all[0].memory_total, 81920u);
}

TEST(GpuStats, WhatIsNotKnownIsLeftOut) {
  GpuStats stats;
  stats.take(0, "node1", summary({{0, -1, 1024}}));
  EXPECT_EQ(stats.text_now(), "1 GPU: memory lowest 1.0 GiB (node1 GPU 0), mean 1.0 GiB");
  stats.take(0, "node1", summary({{0, -1, -1}}));
  EXPECT_EQ(stats.text_now(), "1 GPU: nvidia-smi knows no numbers of them");
}

}  // namespace
}  // namespace hvd
