// What the node is and whether the command could run here: all that the hello's reply tells but the
// shim's part and the fabric's. Reads only; nothing blocks on a network or a name service.
#pragma once

#include <string>

#include "hvdrun/v1/agent.pb.h"
#include "proto/worker_env.h"

namespace hvd {

// Folders of the kernel's own tree, replaceable for tests.
struct PreflightPaths {
  std::string gpus = "/proc/driver/nvidia/gpus";
  std::string rdma = "/sys/class/infiniband";
  std::string boot_id = "/proc/sys/kernel/random/boot_id";
};

// `env` is the worker's environment as far as the hello tells it; its PATH decides. The executable
// and the folder are checked as of now.
[[nodiscard]] hvdrun::v1::HelloReply preflight(const hvdrun::v1::Hello& hello, const EnvList& env,
                                               const PreflightPaths& paths = {});

// GPUs of the node's own driver; CUDA_VISIBLE_DEVICES is the workers' affair.
[[nodiscard]] unsigned count_gpus(const std::string& folder);

}  // namespace hvd
