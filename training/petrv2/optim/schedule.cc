#include "training/petrv2/optim/schedule.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace hvd::petrv2 {
namespace {

// Results are published from the reference batch (8) up to four times as much.
constexpr std::uint64_t kLargestKnown = 4;

}  // namespace

double Schedule::rate(double base, std::uint64_t epoch, std::uint64_t samples_seen) const {
  const double iteration = static_cast<double>(samples_seen) / static_cast<double>(total_batch);
  const double floor = min_ratio * base;
  const double turn = std::numbers::pi * static_cast<double>(epoch) / epochs;
  const double regular = floor + 0.5 * (base - floor) * (1 + std::cos(turn));
  if (iteration >= warmup_iterations) return regular;
  return regular * (1 - (1 - iteration / warmup_iterations) * (1 - warmup_ratio));
}

ScaledRate scale_rate(const TrainConfig& config, std::uint64_t total_batch) {
  const double factor = static_cast<double>(total_batch) / config.reference_batch;
  ScaledRate result;
  result.base = config.lr * factor;
  result.rule = fmt::format("{:g} at a batch of {}, linear: x {:g}", config.lr,
                            config.reference_batch, factor);
  const auto reference = static_cast<std::uint64_t>(config.reference_batch);
  if (total_batch < reference || total_batch > kLargestKnown * reference) {
    result.warning = fmt::format(
        "a total batch of {} is off the table of known results ({} to {}); give more ranks, "
        "--batch or --accumulate, or set the rate with --lr",
        total_batch, reference, kLargestKnown * reference);
  }
  return result;
}

}  // namespace hvd::petrv2
