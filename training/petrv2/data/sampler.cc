#include "training/petrv2/data/sampler.h"

#include <numeric>
#include <utility>

#include "base/plural.h"
#include "training/petrv2/data/counter_rng.h"

namespace hvd::petrv2 {

std::vector<std::uint64_t> epoch_permutation(std::uint64_t seed, std::uint64_t epoch,
                                             std::uint64_t num_samples) {
  std::vector<std::uint64_t> order(num_samples);
  std::iota(order.begin(), order.end(), 0);
  CounterRng rng(seed, epoch, 0, DrawPurpose::kPermutation);
  for (std::uint64_t left = num_samples; left > 1; --left) {
    std::swap(order[left - 1], order[rng.below(left)]);
  }
  return order;
}

Result<Sampler> Sampler::create(const SamplerOptions& options) {
  if (options.num_ranks == 0 || options.batch_size == 0 || options.num_micro_batches == 0) {
    return make_error(
        "a step of {} ranks x {} samples x {} micro-batches has no sample; all three must be at "
        "least 1",
        options.num_ranks, options.batch_size, options.num_micro_batches);
  }
  Sampler sampler(options);
  if (options.num_samples == 0) return make_error("the data set has no sample to train on");
  if (sampler.steps_per_epoch() == 0) {
    return make_error(
        "{} samples are less than one step of {} ({} ranks x {} samples x {} micro-batches); use "
        "fewer ranks, a smaller batch, or --remainder pad",
        options.num_samples, sampler.step_size(), options.num_ranks, options.batch_size,
        options.num_micro_batches);
  }
  return sampler;
}

std::uint64_t Sampler::step_size() const {
  return std::uint64_t{options_.num_ranks} * options_.batch_size * options_.num_micro_batches;
}

std::uint64_t Sampler::steps_in(std::uint64_t num_samples) const {
  const std::uint64_t size = step_size();
  const std::uint64_t extra = options_.remainder == Remainder::kPad ? size - 1 : 0;
  return (num_samples + extra) / size;
}

std::uint64_t Sampler::steps_per_epoch() const { return steps_in(options_.num_samples); }

std::uint64_t Sampler::steps_left(SamplerPosition position, std::uint64_t num_epochs) const {
  position = next_step(position);
  if (position.epoch >= num_epochs) return 0;
  return steps_in(options_.num_samples - position.samples_seen) +
         (num_epochs - 1 - position.epoch) * steps_per_epoch();
}

std::string Sampler::note() const {
  const std::uint64_t steps = steps_per_epoch();
  const std::uint64_t taken = steps * step_size();
  std::string note =
      fmt::format("{} in steps of {}: {} an epoch", counted(options_.num_samples, "sample"),
                  step_size(), counted(steps, "step"));
  if (taken > options_.num_samples) {
    note += fmt::format(", {} repeated to fill the last one",
                        counted(taken - options_.num_samples, "sample"));
  } else if (taken < options_.num_samples) {
    note += fmt::format(", {} dropped each epoch", counted(options_.num_samples - taken, "sample"));
  }
  return note;
}

SamplerPosition Sampler::next_step(SamplerPosition position) const {
  const std::uint64_t seen = position.samples_seen;
  const bool is_over = options_.remainder == Remainder::kPad
                           ? seen >= options_.num_samples
                           : seen + step_size() > options_.num_samples;
  return is_over ? SamplerPosition{position.epoch + 1, 0} : position;
}

SamplerPosition Sampler::after_step(SamplerPosition position) const {
  return next_step({position.epoch, position.samples_seen + step_size()});
}

std::vector<std::uint64_t> Sampler::samples_of_step(SamplerPosition position) {
  prepare_epoch(position.epoch);
  std::vector<std::uint64_t> samples(step_size());
  for (std::uint64_t i = 0; i < samples.size(); ++i) {
    samples[i] = order_[(position.samples_seen + i) % order_.size()];
  }
  return samples;
}

void Sampler::prepare_epoch(std::uint64_t epoch) {
  if (!order_.empty() && order_epoch_ == epoch) return;
  order_epoch_ = epoch;
  if (options_.has_shuffle) {
    order_ = epoch_permutation(options_.seed, epoch, options_.num_samples);
  } else if (order_.empty()) {
    order_.resize(options_.num_samples);
    std::iota(order_.begin(), order_.end(), 0);
  }
}

}  // namespace hvd::petrv2
