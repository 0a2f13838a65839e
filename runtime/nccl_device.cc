#include "runtime/nccl_device.h"

#include <array>

#include "runtime/nccl_check.h"

namespace hvd {
namespace {

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

Result<std::string> library_version(cudaError_t (*get)(int*), std::string_view what) {
  int number = 0;
  if (auto done = check_cuda(get(&number), what); !done) return tl::unexpected(done.error());
  return cuda_version_text(number);
}

}  // namespace

Result<DeviceFacts> device_facts(int device) {
  DeviceFacts facts;
  int nccl = 0;
  if (ncclGetVersion(&nccl) == ncclSuccess) facts.nccl_version = nccl_version_text(nccl);
  const auto runtime = library_version(cudaRuntimeGetVersion, "version of the CUDA runtime");
  if (!runtime) return tl::unexpected(runtime.error());
  facts.cuda_version = *runtime;
  const auto driver = library_version(cudaDriverGetVersion, "version of the CUDA driver");
  if (!driver) return tl::unexpected(driver.error());
  facts.driver_version = *driver;
  cudaDeviceProp properties{};
  auto done = check_cuda(cudaGetDeviceProperties(&properties, device),
                         fmt::format("properties of GPU {}", device));
  if (!done) return tl::unexpected(done.error());
  facts.gpu_name = static_cast<const char*>(properties.name);
  facts.gpu_uuid = uuid_text(properties.uuid);
  std::array<char, 32> bus_id{};
  done = check_cuda(cudaDeviceGetPCIBusId(bus_id.data(), bus_id.size(), device),
                    fmt::format("bus id of GPU {}", device));
  if (!done) return tl::unexpected(done.error());
  facts.gpu_bus_id = bus_id.data();
  return facts;
}

}  // namespace hvd
