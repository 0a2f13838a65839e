// One forward and backward pass and one optimiser step of a configuration on formula weights, every
// stage summed up.
#pragma once

#include <nlohmann/json.hpp>

#include "training/petrv2/config.h"
#include "training/petrv2/verify/options.h"

namespace hvd::petrv2 {

// What verify writes: {config, device, precision, ..., stages, parameters, losses, assignments,
// grad_norm, decoded}. Throws what libtorch throws; errors of the boxes file are values.
[[nodiscard]] Result<nlohmann::ordered_json> run_configuration(const Config& config,
                                                               const VerifyOptions& options);

}  // namespace hvd::petrv2
