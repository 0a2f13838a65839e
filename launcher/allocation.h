// The hosts that a scheduler has given us, where the command line names none: Slurm, LSF, PBS, SGE,
// Kubernetes' mpi-operator and Volcano, in this order; the first that is there counts. Pure: the
// environment and the files are handed in. Errors are exit 2 and name the variable or file.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/hostlist.h"

namespace hvd {

struct Allocation {
  std::vector<HostSpec> hosts;
  std::string source;            // "Slurm job 17 (SLURM_JOB_NODELIST)", for messages
  std::vector<std::string> rsh;  // words that reach a node, as for --rsh; empty: ssh as usual
};

struct AllocationFiles {
  std::function<Result<std::string>(const std::string& path)> read;
  std::function<bool(const std::string& path)> exists;
  std::function<std::vector<std::string>(const std::string& folder)> list;  // names; none: {}
};

// nullopt: no scheduler has left anything here.
[[nodiscard]] Result<std::optional<Allocation>> find_allocation(const EnvList& environment,
                                                                const AllocationFiles& files);

}  // namespace hvd
