#include "bench_memory.h"

#include <cstring>
#include <vector>

#ifdef HVDRUN_HAVE_NCCL
#include <cuda_runtime_api.h>
#endif

#include "hvdrun/runtime.h"

namespace {

using hvd::Result;

class HostMemory final : public BenchMemory {
 public:
  explicit HostMemory(std::size_t size) : bytes_(size) {}
  void* data() override { return bytes_.data(); }
  Result<void> copy_from(BenchMemory& other, std::size_t bytes, void* /*stream*/) override {
    std::memcpy(data(), other.data(), bytes);
    return {};
  }
  Result<void> write(const void* bytes, std::size_t size) override {
    std::memcpy(data(), bytes, size);
    return {};
  }
  Result<void> read(void* bytes, std::size_t size) override {
    std::memcpy(bytes, data(), size);
    return {};
  }

 private:
  std::vector<unsigned char> bytes_;
};

#ifdef HVDRUN_HAVE_NCCL
Result<void> check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  return hvd::make_error("{}: {}", what, cudaGetErrorString(error));
}

class DeviceMemory final : public BenchMemory {
 public:
  explicit DeviceMemory(void* data) : data_(data) {}
  ~DeviceMemory() override { cudaFree(data_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  void* data() override { return data_; }
  Result<void> copy_from(BenchMemory& other, std::size_t bytes, void* stream) override {
    return check(cudaMemcpyAsync(data_, other.data(), bytes, cudaMemcpyDeviceToDevice,
                                 static_cast<cudaStream_t>(stream)),
                 "copy");
  }
  Result<void> write(const void* bytes, std::size_t size) override {
    auto done = check(cudaMemcpy(data_, bytes, size, cudaMemcpyHostToDevice), "copy to the GPU");
    // A small copy may still be under way, and the communicator's stream does not wait for it.
    if (done) done = check(cudaDeviceSynchronize(), "copy to the GPU");
    return done;
  }
  Result<void> read(void* bytes, std::size_t size) override {
    return check(cudaMemcpy(bytes, data_, size, cudaMemcpyDeviceToHost), "copy from the GPU");
  }

 private:
  void* const data_;
};
#endif

}  // namespace

Result<std::unique_ptr<BenchMemory>> make_bench_memory(std::size_t size, bool is_cuda) {
  if (!is_cuda) return std::make_unique<HostMemory>(size);
#ifdef HVDRUN_HAVE_NCCL
  void* data = nullptr;
  const auto made = check(cudaMalloc(&data, size), "memory of the GPU");
  if (!made) return tl::unexpected(made.error());
  return std::make_unique<DeviceMemory>(data);
#else
  return hvd::make_error(hvd::ExitCode::kUsage, "--device cuda: this build has no CUDA");
#endif
}

Result<int> use_cuda_device([[maybe_unused]] int local_rank) {
#ifdef HVDRUN_HAVE_NCCL
  int num_gpus = 0;
  auto done = check(cudaGetDeviceCount(&num_gpus), "number of GPUs");
  const bool may_share = hvd::may_share_gpus() && num_gpus > 0;
  const int device = may_share ? local_rank % num_gpus : local_rank;
  if (done) done = check(cudaSetDevice(device), "choice of the GPU");
  if (!done) return tl::unexpected(done.error());
  return device;
#else
  return hvd::make_error(hvd::ExitCode::kUsage, "--device cuda: this build has no CUDA");
#endif
}
