// What the environment says to NCCL: names that NCCL does not read, defaults of ours, and the
// settings that a rank tells the others. Pure; no NCCL.
#pragma once

#include <string>
#include <vector>

#include "proto/worker_env.h"

namespace hvd {

// A sentence for each variable that does nothing, does another thing than its name says, or is not
// NCCL's any more; it says what to use.
[[nodiscard]] std::vector<std::string> nccl_variable_warnings(const EnvList& environment);

// What is to be set before the first call of NCCL. HVDRUN_ALLOW_SHARED_GPU=1, of tests: each rank
// looks like a node of its own, so that several may share one GPU.
[[nodiscard]] EnvList nccl_defaults(const EnvList& environment, int rank);
[[nodiscard]] bool allows_shared_gpu(const EnvList& environment);

// "NCCL_ALGO=Ring", sorted by name: of the environment, then of the configuration files' texts; the
// first one that has a name counts, as for NCCL. Left out is what rightly differs from rank to rank
// or changes nothing of what NCCL does: interfaces, debugging, paths.
[[nodiscard]] std::vector<std::string> nccl_settings(const EnvList& environment,
                                                     const std::vector<std::string>& files);

// Paths of the configuration files that NCCL reads, first one first.
[[nodiscard]] std::vector<std::string> nccl_configuration_files(const EnvList& environment);

}  // namespace hvd
