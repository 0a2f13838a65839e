// The learning rate as a pure function of epoch and samples seen: a cosine that steps once an
// epoch, and a linear warm-up over the first iterations. Nothing is carried from step to step, so a
// resumed run, also one on another number of ranks, has the rate of the samples it has seen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "training/petrv2/config.h"

namespace hvd::petrv2 {

struct Schedule {
  int epochs = 24;
  int warmup_iterations = 500;
  double warmup_ratio = 1.0 / 3;
  double min_ratio = 1e-3;
  std::uint64_t total_batch = 1;  // samples a step: ranks x micro-batches x batch of a rank

  // `base` with the factor of epoch `epoch` (from 0) after `samples_seen` samples since the start.
  [[nodiscard]] double rate(double base, std::uint64_t epoch, std::uint64_t samples_seen) const;
};

// The base rate for a total batch by the rule of linear scaling from the configuration's reference:
// above the reference in proportion, below it too.
struct ScaledRate {
  double base = 0;
  std::string rule;                    // "2e-4 at a batch of 8, linear: x 0.5"
  std::optional<std::string> warning;  // the batch is off the range that results are known for
};
[[nodiscard]] ScaledRate scale_rate(const TrainConfig& config, std::uint64_t total_batch);

}  // namespace hvd::petrv2
