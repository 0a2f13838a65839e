// Which samples each rank takes at each step. One permutation an epoch, keyed by seed and epoch,
// and independent of ranks and batch: step after step takes the next W b k positions of it (W
// ranks, b samples a micro-batch, k micro-batches), rank r the r-th run of b k in them. So where an
// epoch stands is one number, and it can be continued by another number of ranks: nothing is
// repeated and nothing is lost. All ranks take the same number of steps; what is left over at the
// end of an epoch is dropped or padded, and note() says how much. Pure but for the permutation it
// keeps; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace hvd::petrv2 {

enum class Remainder {
  kDrop,  // an epoch ends where less than a whole step is left
  kPad,   // the last step is filled from the epoch's beginning
};

struct SamplerOptions {
  std::uint64_t num_samples = 0;
  std::uint32_t num_ranks = 1;
  std::uint32_t batch_size = 1;         // samples a micro-batch and rank
  std::uint32_t num_micro_batches = 1;  // a step and rank
  Remainder remainder = Remainder::kDrop;
  bool has_shuffle = true;  // without it the order is that of the data set
  std::uint64_t seed = 0;
};

// Part of a checkpoint, taken between two steps.
struct SamplerPosition {
  std::uint64_t epoch = 0;
  std::uint64_t samples_seen = 0;  // of this epoch, by all ranks together

  bool operator==(const SamplerPosition&) const = default;
};

// order[position] = sample; a permutation of {0 .. num_samples - 1}.
[[nodiscard]] std::vector<std::uint64_t> epoch_permutation(std::uint64_t seed, std::uint64_t epoch,
                                                           std::uint64_t num_samples);

class Sampler {
 public:
  // No sample, a size of 0, or a step larger than the data set (with kDrop) is an error.
  [[nodiscard]] static Result<Sampler> create(const SamplerOptions& options);

  [[nodiscard]] const SamplerOptions& options() const { return options_; }
  // Samples a step, all ranks: W b k.
  [[nodiscard]] std::uint64_t step_size() const;
  // Of an epoch begun at its beginning.
  [[nodiscard]] std::uint64_t steps_per_epoch() const;
  // From the step that begins at `position` to the end of epoch num_epochs - 1.
  [[nodiscard]] std::uint64_t steps_left(SamplerPosition position, std::uint64_t num_epochs) const;
  // One sentence: "10 samples in steps of 4: 2 steps an epoch, 2 samples dropped each epoch".
  [[nodiscard]] std::string note() const;

  // The position where the next step begins: the same, or the next epoch's beginning when this
  // epoch has no step left.
  [[nodiscard]] SamplerPosition next_step(SamplerPosition position) const;
  // After the step that begins at `position` (one that next_step() gave).
  [[nodiscard]] SamplerPosition after_step(SamplerPosition position) const;

  // The W b k samples of the step that begins at `position` (one that next_step() gave):
  // micro-batch m of rank r are the b from (r k + m) b on.
  [[nodiscard]] std::vector<std::uint64_t> samples_of_step(SamplerPosition position);

 private:
  explicit Sampler(const SamplerOptions& options) : options_(options) {}
  void prepare_epoch(std::uint64_t epoch);
  [[nodiscard]] std::uint64_t steps_in(std::uint64_t num_samples) const;

  SamplerOptions options_;
  std::vector<std::uint64_t> order_;  // of epoch order_epoch_; empty before the first
  std::uint64_t order_epoch_ = 0;
};

}  // namespace hvd::petrv2
