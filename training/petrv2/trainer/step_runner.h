// One optimiser step: forward and backward of the micro-batches, the mean of the gradients over the
// ranks, clipping, AdamW. Nothing here waits for the device but what the matching needs; what a
// step came to is read later (StepValues). Thread: the trainer's.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/communicator.h"
#include "training/petrv2/data/sample.h"
#include "training/petrv2/model/petrv2.h"
#include "training/petrv2/optim/adamw.h"
#include "training/petrv2/optim/clip.h"
#include "training/petrv2/optim/gradient_buffer.h"
#include "training/petrv2/trainer/train_options.h"

namespace hvd::petrv2 {

struct StepInputs {
  std::vector<std::vector<Sample>> micro_batches;  // of this rank
  Normalisers normalisers;                         // of the whole step
  double lr = 0;
  std::uint64_t epoch = 0;
  std::uint64_t first_position = 0;  // in the epoch, of this rank's first sample: keys all draws
};

// The names of StepValues: "total", every loss term of the configuration, "grad_norm", "skipped".
[[nodiscard]] std::vector<std::string> step_value_names(const ModelConfig& config,
                                                        bool has_denoising);

class StepRunner {
 public:
  // All not owned, outlive this.
  StepRunner(Petrv2& model, Communicator& communicator, const TrainConfig& config,
             const TrainOptions& options);

  // fp64 on the device, in the order of step_value_names(): means over this rank's micro-batches;
  // grad_norm and skipped (0 or 1) are the same on all ranks. `after_forward` is called once, when
  // the first forward pass has been handed to the device.
  [[nodiscard]] Result<at::Tensor> run(const StepInputs& inputs,
                                       const std::function<void()>& after_forward);

  [[nodiscard]] AdamW& optimiser() { return optimiser_; }
  [[nodiscard]] LossScale& loss_scale() { return loss_scale_; }

 private:
  [[nodiscard]] at::Tensor run_micro_batch(const StepInputs& inputs, std::size_t index,
                                           const std::function<void()>& after_forward);
  [[nodiscard]] ForwardOptions forward_options(const StepInputs& inputs, std::size_t index) const;
  [[nodiscard]] Result<void> average_gradients();

  Petrv2& model_;
  Communicator& communicator_;
  const TrainConfig& config_;
  const TrainOptions& options_;
  const std::vector<std::string> value_names_;
  const bool is_on_gpu_;
  GradientBuffer gradients_;
  AdamW optimiser_;
  LossScale loss_scale_;
};

}  // namespace hvd::petrv2
