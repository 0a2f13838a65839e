// What this process is and runs on, as it registers, and the limits that it lifts for itself.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "hvdrun/runtime.h"
#include "hvdrun/v1/types.pb.h"
#include "proto/v1.h"
#include "proto/worker_env.h"

namespace hvd {

// Of open descriptors.
struct DescriptorLimits {
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
};
// Raises the soft limit to the hard one: NCCL holds several sockets for each peer. What then holds.
DescriptorLimits lift_descriptor_limit();
// "at most 1024 open files (hard limit 4096)": for the texts of failures.
[[nodiscard]] std::string describe(const DescriptorLimits& limits);

// Entries of SYSFS/class/infiniband; 0 without any.
[[nodiscard]] std::uint32_t count_rdma_devices(const std::string& sysfs);

// Without the GPU's part. place: the launcher's.
[[nodiscard]] hvdrun::v1::Registration worker_facts(const Place& place, std::uint32_t generation,
                                                    const InitOptions& options,
                                                    const EnvList& environment,
                                                    const DescriptorLimits& limits);

}  // namespace hvd
