// The training loop of one rank: step after step, with the other ranks, until the epochs or steps
// are through, somebody wants to stop, or something failed. All ranks leave it at the same step.
//
// Lifecycle: made with all parts in place, run() once. Thread: one.
#pragma once

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "runtime/activity_board.h"
#include "training/petrv2/optim/schedule.h"
#include "training/petrv2/trainer/rank_agreement.h"
#include "training/petrv2/trainer/step_feed.h"
#include "training/petrv2/trainer/step_log.h"
#include "training/petrv2/trainer/step_runner.h"
#include "training/petrv2/trainer/train_options.h"
#include "training/petrv2/trainer/train_state.h"

namespace hvd::petrv2 {

// Not owned, outlive the trainer.
struct TrainerParts {
  const TrainOptions& options;
  const Config& config;
  const RecordSet& records;
  const std::string& data;  // which data set it is
  const Petrv2& model;
  Communicator& communicator;  // of the CPUs
  RankAgreement& agreement;
  ActivityBoard& activity;
  StepSpans& spans;
  StepRunner& runner;
  TrainState& state;
  const Sampler& sampler;
  StepFeed& feed;
  StepLog& log;
  CheckpointStore* store;  // rank 0 with --out, else null
  std::FILE* sample_log;   // rank 0 with --sample-log, else null
};

class Trainer {
 public:
  Trainer(const TrainerParts& parts, Schedule schedule, double base_rate, TrainPosition position,
          std::uint64_t num_steps_to_do);

  // 0 when everything is done, 143 after SIGTERM, 130 after SIGINT; errors carry a WorkerExit.
  [[nodiscard]] Result<int> run();
  [[nodiscard]] const TrainPosition& position() const { return position_; }

 private:
  [[nodiscard]] Normalisers normalisers(const StepPlan& plan) const;
  [[nodiscard]] Result<void> run_step(StepData data);
  [[nodiscard]] Result<std::vector<double>> exchange();
  [[nodiscard]] Result<void> take_riders();
  [[nodiscard]] Result<void> take_means(const std::vector<double>& means);
  [[nodiscard]] Result<void> check_skips() const;
  [[nodiscard]] Result<void> save();
  void log_samples(const StepPlan& plan);
  [[nodiscard]] StepReport report_of(const StepPlan& plan, double lr);

  TrainerParts parts_;
  const Schedule schedule_;
  const double base_rate_;
  const std::uint64_t num_steps_to_do_;  // of this run
  TrainPosition position_;
  std::uint64_t num_steps_done_ = 0;
  std::uint64_t saved_step_;  // the newest checkpoint's
  at::Tensor riders_;         // of the last step, not looked at yet
  StepWishes agreed_;         // of all ranks, not fulfilled yet
  SteadyTime last_step_end_;
  std::chrono::nanoseconds last_data_wait_{0};
};

}  // namespace hvd::petrv2
