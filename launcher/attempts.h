// The job with its restarts: one Job after the other, as --max-restarts and --spare allow
// (restart.h). Without them there is one.
#pragma once

#include <optional>

#include "launcher/job.h"

namespace hvd {

struct Outcome {
  int code = static_cast<int>(ExitCode::kInfrastructure);
  int fatal_signal = 0;             // that hvdrun should die of; 0: none
  std::optional<Error> error = {};  // the next attempt has no plan
};

// Blocks until all is over. --timeout counts over all attempts.
[[nodiscard]] Outcome run_attempts(Options options, std::optional<Plan> plan,
                                   Job::Surroundings surroundings, AgentImage agent);

}  // namespace hvd
