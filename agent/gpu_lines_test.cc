#include "agent/gpu_lines.h"

#include <gmock/gmock.h>

namespace hvd {
namespace {

TEST(GpuLine, HasIndexUtilizationAndMemory) {
  const auto sample = parse_gpu_line("3, 97, 20123, 143771");
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->index(), 3u);
  EXPECT_TRUE(sample->has_utilization());
  EXPECT_EQ(sample->utilization(), 97u);
  EXPECT_TRUE(sample->has_memory());
  EXPECT_EQ(sample->used_mib(), 20123u);
  EXPECT_EQ(sample->total_mib(), 143771u);
}

TEST(GpuLine, WhatNvidiaSmiDoesNotKnowIsLeftOut) {
  const auto sample = parse_gpu_line("0, [N/A], [Not Supported], 4096\r");
  ASSERT_TRUE(sample);
  EXPECT_FALSE(sample->has_utilization());
  EXPECT_FALSE(sample->has_memory());
  const auto absurd = parse_gpu_line("0, 5, 18446744073709551615, 143771");
  ASSERT_TRUE(absurd);
  EXPECT_FALSE(absurd->has_memory());
  const auto memory_only = parse_gpu_line("0,N/A,10,4096");
  ASSERT_TRUE(memory_only);
  EXPECT_TRUE(memory_only->has_memory());
  const auto odd = parse_gpu_line("0, 101, 1, 2");
  ASSERT_TRUE(odd);
  EXPECT_FALSE(odd->has_utilization()) << "no percentage";
}

TEST(GpuLine, GarbageIsNone) {
  for (const char* text :
       {"", "0", "0, 1, 2", "0, 1, 2, 3, 4", "x, 1, 2, 3", "0, 1 %, 2, 3", "-1, 1, 2, 3", ", , , ",
        "index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]",
        "Failed to initialize NVML: Driver/library version mismatch"}) {
    EXPECT_FALSE(parse_gpu_line(text)) << text;
  }
}

TEST(GpuLines, PiecesBecomeLinesAndTheLastSampleOfEachGpuIsKept) {
  GpuLines lines;
  EXPECT_FALSE(lines.add("0, 1, 10, 1"));
  EXPECT_TRUE(lines.add("00\n1, 2, 20, 100\n0, 3"));
  EXPECT_TRUE(lines.add(", 30, 100\n"));
  const auto summary = lines.take();
  ASSERT_EQ(summary.gpus_size(), 2);
  EXPECT_EQ(summary.gpus(0).utilization(), 3u);
  EXPECT_EQ(summary.gpus(1).utilization(), 2u);
  EXPECT_EQ(lines.take().gpus_size(), 0) << "told once";
}

TEST(GpuLines, AnErrorOfTheProgramIsKeptAndNoLineGrowsWithoutBound) {
  GpuLines lines;
  EXPECT_FALSE(lines.add("NVML: Unknown Error\n\n"));
  EXPECT_EQ(lines.last_words(), "NVML: Unknown Error");
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(lines.add(std::string(1000, '1')));
  EXPECT_TRUE(lines.add("\n0, 1, 2, 3\n"));
  EXPECT_EQ(lines.last_words(), "NVML: Unknown Error");
}

}  // namespace
}  // namespace hvd
