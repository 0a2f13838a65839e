#include "agent/gpu_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ParseGpuUses, TakesNumberNameAndMemory) {
  const auto uses = parse_gpu_uses("0, GPU-a, 4\n1, GPU-b, 81000\r\nnoise\n2, GPU-c, [N/A]\n");
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses[1].index, 1U);
  EXPECT_EQ(uses[1].uuid, "GPU-b");
  EXPECT_EQ(uses[1].used_mib, 81000U);
  EXPECT_THAT(parse_gpu_uses(""), IsEmpty());
}

TEST(ParseGpuProcesses, TakesGpuPidAndMemory) {
  const auto processes =
      parse_gpu_processes("GPU-a, 4711, 81000\nGPU-b, [N/A], 3\nGPU-c\nGPU-d, 12, [N/A]\n");
  ASSERT_EQ(processes.size(), 2U);
  EXPECT_EQ(processes[0].uuid, "GPU-a");
  EXPECT_EQ(processes[0].pid, 4711);
  EXPECT_EQ(processes[0].used_mib, 81000U);
  EXPECT_EQ(processes[1].used_mib, 0U);
}

TEST(GpuRemains, NamesGpusThatHoldMoreThanBefore) {
  const std::vector<GpuUse> before = {{0, "a", 100}, {3, "b", 0}};
  const std::vector<GpuUse> after = {{0, "a", 356}, {3, "b", 12390}, {4, "new", 9999}};
  EXPECT_THAT(
      gpu_remains(before, after, {{"b", 4711, 1000, 0}, {"a", 1, 0, 0}}),
      ElementsAre("GPU 3 still holds 12.1 GiB (process 4711 of uid 1000, not of this job)"));
  EXPECT_THAT(gpu_remains(before, after, {}),
              ElementsAre("GPU 3 still holds 12.1 GiB (no process is seen)"));
  EXPECT_THAT(gpu_remains(before, before, {}), IsEmpty());
  EXPECT_THAT(gpu_remains({}, after, {}), IsEmpty()) << "nothing to compare with";
}

}  // namespace
}  // namespace hvd
