// What this process is and runs on, as it registers.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "hvdrun/runtime.h"
#include "hvdrun/v1/types.pb.h"
#include "proto/v1.h"
#include "proto/worker_env.h"
#include "runtime/descriptor_limits.h"

namespace hvd {

// Entries of SYSFS/class/infiniband with a port whose state is ACTIVE; 0 without any.
[[nodiscard]] std::uint32_t count_rdma_devices(const std::string& sysfs);

// Without the GPU's part. place: the launcher's.
[[nodiscard]] hvdrun::v1::Registration worker_facts(const Place& place, std::uint32_t generation,
                                                    const InitOptions& options,
                                                    const EnvList& environment,
                                                    const DescriptorLimits& limits);

}  // namespace hvd
