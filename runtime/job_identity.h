// Which job a rank belongs to, in words that are equal on all ranks of one job and, as far as its
// launcher tells jobs apart, differ from those of any other: "torchrun run abc, 4 ranks", "srun
// step 77.0, 8 ranks", "4 ranks" where the launcher has no name for it. Two jobs that are pointed
// at one meeting place do not mix by it. Pure.
#pragma once

#include <string>

#include "hvdrun/place.h"
#include "proto/worker_env.h"

namespace hvd {

// Printable ASCII, at most 200 bytes.
[[nodiscard]] std::string job_identity(const EnvList& environment, const Place& place);

}  // namespace hvd
