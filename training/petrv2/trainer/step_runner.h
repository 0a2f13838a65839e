// One optimiser step: forward and backward of the micro-batches, the mean of the gradients over the
// ranks while backward still runs, clipping, AdamW. Nothing here waits for the device but what the
// matching needs; what a step came to is read later. Thread: the trainer's.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "hvdrun/gradient_synchronizer.h"
#include "training/petrv2/model/petrv2.h"
#include "training/petrv2/optim/adamw.h"
#include "training/petrv2/optim/clip.h"
#include "training/petrv2/trainer/batch_maker.h"
#include "training/petrv2/trainer/step_spans.h"
#include "training/petrv2/trainer/train_options.h"

namespace hvd::petrv2 {

struct StepInputs {
  std::vector<HostBatch> micro_batches;  // of this rank
  Normalisers normalisers;               // of the whole step
  double lr = 0;
  std::uint64_t epoch = 0;
  std::uint64_t first_position = 0;  // in the epoch, of this rank's first sample: keys all draws
};

// What a step came to, on the device.
struct StepOutcome {
  at::Tensor values;  // fp64, in the order of step_value_names(): means over this rank's
                      // micro-batches; grad_norm and skipped (0 or 1) are the same on all ranks
  at::Tensor riders;  // what the ranks gave to after_forward, as means over them
};

// The parameters that are trained, in the order of the model's: what the synchronizer is made for.
[[nodiscard]] std::vector<NamedParameter> trainable_parameters(const Petrv2& model);

// The names of a step's values: "total", every loss term of the configuration, "grad_norm",
// "skipped".
[[nodiscard]] std::vector<std::string> step_value_names(const ModelConfig& config,
                                                        bool has_denoising);

class StepRunner {
 public:
  // All not owned, outlive this. `gradients`: of trainable_parameters(model).
  StepRunner(Petrv2& model, GradientSynchronizer& gradients, StepSpans& spans,
             const TrainConfig& config, const TrainOptions& options);

  // What this rank tells the others with the step: given when its first forward pass has been
  // handed to the device, so that nothing waits for it.
  using AfterForward = std::function<Result<std::vector<double>>()>;
  [[nodiscard]] Result<StepOutcome> run(const StepInputs& inputs,
                                        const AfterForward& after_forward);

  [[nodiscard]] AdamW& optimiser() { return optimiser_; }
  [[nodiscard]] LossScale& loss_scale() { return loss_scale_; }

 private:
  [[nodiscard]] Result<at::Tensor> run_micro_batch(const StepInputs& inputs, std::size_t index,
                                                   const AfterForward& after_forward);
  [[nodiscard]] ForwardOptions forward_options(const StepInputs& inputs, std::size_t index) const;

  Petrv2& model_;
  GradientSynchronizer& gradients_;
  StepSpans& spans_;
  const TrainConfig& config_;
  const TrainOptions& options_;
  const std::vector<std::string> value_names_;
  AdamW optimiser_;
  LossScale loss_scale_;
};

}  // namespace hvd::petrv2
