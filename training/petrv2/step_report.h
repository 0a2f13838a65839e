// What one optimiser step was, and how it is told: as a line for people, a JSON line for programs,
// scalars for TensorBoard. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "training/formats/event_writer.h"

namespace hvd::petrv2 {

struct LossTerm {
  std::string name;  // "total", "class", "box"
  double value = 0;  // of the whole step: all ranks, all micro-batches
};

struct StepReport {
  std::uint64_t step = 0;            // from 1: steps done, skipped ones included
  std::uint64_t epoch = 0;           // from 0
  std::uint64_t samples_seen = 0;    // over all ranks since the start of the training
  std::vector<LossTerm> loss_terms;  // shown in this order
  std::vector<LossTerm> details;     // what they are the sums of: for JSON and TensorBoard only
  double lr = 0;
  double grad_norm = 0;            // before clipping; inf or nan in a step that was skipped
  std::uint64_t num_skipped = 0;   // so far, on all ranks alike
  double samples_per_s = 0;        // over all ranks
  double data_wait_s = 0;          // how long this step waited for its samples
  std::uint64_t memory_bytes = 0;  // the most that was in use at a time, on this rank
  double eta_s = 0;                // to the end of the training; nan if not known
};

// The steps of one line: means of what differs from step to step, the last step's value of the
// rest.
//
// A value that is inf or nan enters no mean: of a skipped step the norm (and the losses, if they
// are the cause) is left out, and the line counts the skipped steps apart. Where no step of the
// line had a finite value, the line shows "-".
class StepWindow {
 public:
  void add(const StepReport& report);
  [[nodiscard]] bool is_empty() const { return num_steps_ == 0; }
  [[nodiscard]] std::uint64_t num_steps() const { return num_steps_; }

  // "step 120 epoch 2 loss 1.2346 (class 0.5123, box 0.7222) lr 2.00e-04 grad norm 12.3 8.1
  // samples/s data wait 0.02 s memory 1.25 GiB ETA 3 min 20 s, 2 steps skipped". One line without
  // its end.
  [[nodiscard]] std::string line() const;

  // Begins the next line's steps.
  void clear();

 private:
  class Mean {
   public:
    void add(double value);
    // "-" if there is none.
    [[nodiscard]] std::string text(const char* format) const;

   private:
    double sum_ = 0;
    std::uint64_t count_ = 0;
  };

  StepReport last_;
  std::vector<Mean> loss_terms_;  // in the order of the report
  Mean grad_norm_;
  Mean data_wait_;
  std::uint64_t num_steps_ = 0;
};

// One JSON object in one line without its end; `wall_time` in seconds since 1970 is its "time".
// JSON knows no inf and nan: they are null.
[[nodiscard]] std::string json_line(const StepReport& report, double wall_time);

// "loss/NAME" (details too), "optimiser/lr", "optimiser/grad_norm" (only if finite: one inf would
// flatten the curve), "optimiser/num_skipped", "speed/samples_per_s", "speed/data_wait_s",
// "memory/gib".
[[nodiscard]] std::vector<Scalar> to_scalars(const StepReport& report);

}  // namespace hvd::petrv2
