// What a rank's GPU and its libraries are, for the registration. Thread: any.
#pragma once

#include <string>

#include "base/status.h"

namespace hvd {

struct DeviceFacts {
  std::string nccl_version;    // of the library that is loaded: "2.28.9"
  std::string cuda_version;    // of the runtime library: "13.0"
  std::string driver_version;  // the newest CUDA that the driver serves: "13.0"
  std::string gpu_name;        // "NVIDIA H200"
  std::string gpu_uuid;        // "GPU-1c2f...", as nvidia-smi prints it
  std::string gpu_bus_id;      // "0000:1b:00.0"
};

// device: ordinal among the GPUs that this process sees.
[[nodiscard]] Result<DeviceFacts> device_facts(int device);

}  // namespace hvd
