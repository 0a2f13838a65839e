// What programs built with MPICH, and the agents that answer them, are told of the job: the
// variables that Hydra gives, and which ranks share a node. Pure.
#pragma once

#include <string>
#include <vector>

#include "hvdrun/v1/agent.pb.h"
#include "launcher/plan.h"
#include "proto/v1.h"
#include "proto/worker_env.h"

namespace hvd {

// PMI_FD, PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS. The descriptor is number 3.
[[nodiscard]] EnvList pmi_env(const RankPlace& place);

// UCX, MPICH's way between nodes, would try every address of a node that has no RDMA device, and
// take a bridge like docker0 for one. Where there are several nodes it is told the interface by
// which this one reached the others.
[[nodiscard]] EnvList pmi_env_if_unset(std::uint32_t num_nodes, bool has_rdma,
                                       const std::string& interface);

// The node of each rank, in rank order, as PMI writes it: "(vector,(FIRST,NUM,EACH),...)", blocks
// of NUM nodes from FIRST on with EACH consecutive ranks on each. The blocks repeat until all ranks
// are placed. Empty where it is longer than a value of PMI may be: MPICH then compares host names.
[[nodiscard]] std::string process_mapping(const std::vector<std::uint32_t>& node_of_rank);

[[nodiscard]] v1::PmiWorld pmi_world(const Plan& plan);

}  // namespace hvd
