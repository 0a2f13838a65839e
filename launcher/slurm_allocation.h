// A Slurm allocation: its hosts and how srun reaches them. Pure.
#pragma once

#include "launcher/allocation.h"

namespace hvd {

// nullopt outside of one. Slots are its tasks (SLURM_TASKS_PER_NODE); where the user asked for no
// number of tasks and GPUs were given, as many as GPUs (SLURM_GPUS_ON_NODE).
[[nodiscard]] Result<std::optional<Allocation>> find_slurm_allocation(const EnvList& environment);

// A step of one task with all CPUs, memory and GPUs that the job has on the node, beside whatever
// runs there, whose standard streams pass bytes as they come.
[[nodiscard]] std::vector<std::string> srun_words(const EnvList& environment);

}  // namespace hvd
