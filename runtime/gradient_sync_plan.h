// What a rank tells the others of the tensors that it synchronises, and what keeps tensors from
// being synchronised.
#pragma once

#include <string>
#include <vector>

#include "hvdrun/gradient_synchronizer.h"
#include "runtime/plan_check.h"

namespace hvd {

// Of parameters for a GradientSynchronizer.
[[nodiscard]] Plan plan_of_parameters(const std::vector<NamedParameter>& parameters,
                                      const Communicator& data, const SyncOptions& options);
// Of any tensors.
[[nodiscard]] Plan plan_of_tensors(const std::vector<NamedParameter>& tensors);

}  // namespace hvd
