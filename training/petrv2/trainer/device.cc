#include "training/petrv2/trainer/device.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <sys/resource.h>

#include <cstdlib>

namespace hvd::petrv2 {

Result<at::Device> choose_device(const std::string& wish, int local_rank, bool may_share) {
  if (wish == "cpu") return at::Device(at::kCPU);
  const int num_gpus = c10::cuda::device_count();
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (num_gpus == 0 && visible != nullptr) {
    return make_error(ExitCode::kUsage,
                      "no GPU is visible here with CUDA_VISIBLE_DEVICES={}: unset it, or use "
                      "--device cpu",
                      *visible == '\0' ? "(empty)" : visible);
  }
  if (num_gpus == 0 && wish == "auto") return at::Device(at::kCPU);
  if (num_gpus == 0) {
    return make_error(ExitCode::kUsage, "--device cuda: no GPU is visible here; use --device cpu");
  }
  if (local_rank >= num_gpus && !may_share) {
    return make_error(ExitCode::kUsage,
                      "local rank {} has no GPU of its own: {} visible here; start fewer ranks on "
                      "this host or use --device cpu",
                      local_rank, num_gpus);
  }
  const at::Device device(at::kCUDA, static_cast<c10::DeviceIndex>(local_rank % num_gpus));
  c10::cuda::set_device(device.index());
  return device;
}

std::uint64_t total_memory(const at::Device& device) {
  if (!device.is_cuda()) return 0;
  return c10::cuda::CUDACachingAllocator::get()->getMemoryInfo(device.index()).second;
}

std::uint64_t peak_memory(const at::Device& device) {
  if (device.is_cuda()) {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
    return static_cast<std::uint64_t>(stats.allocated_bytes[0].peak);
  }
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace hvd::petrv2
