// From what steps came to, to what is told of them. A step's values are on the device when the next
// step begins, so they are read while that one runs, ride with it to the other ranks, and come back
// as means with the one after it: reporting never waits. Counts skipped steps, on all ranks alike.
//
// An output that fails is told of once and left alone: the training does not depend on it.
//
// Use: add() after a step; when the next step's forward has been handed out: read(), take_means()
// of what the step before brought back, values() for this one. drain: read(), then an exchange
// alone, until is_empty(). Thread: the trainer's.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "training/formats/event_writer.h"
#include "training/petrv2/progress.h"
#include "training/petrv2/step_report.h"
#include "training/torch.h"

namespace hvd::petrv2 {

struct SkipCounts {
  std::uint64_t total = 0;
  std::uint64_t in_a_row = 0;
};

class StepLog {
 public:
  // `names`: of a step's values (step_runner.h). Progress and events: rank 0's, else none.
  StepLog(std::vector<std::string> names, SkipCounts skips, std::optional<Progress> progress,
          std::optional<EventWriter> events);

  // `report`: all but the losses, the norm and the counts. `values`: on the device.
  void add(StepReport report, at::Tensor values);
  // Waits for the device if the step is not through yet.
  void read();
  [[nodiscard]] bool is_empty() const { return pending_.empty(); }

  [[nodiscard]] std::size_t num_values() const { return names_.size(); }
  // What this rank brings to the next exchange: the losses of the oldest step whose means are not
  // known; empty without one.
  [[nodiscard]] std::vector<double> values() const;
  // The means over the ranks of what they brought: tells of that step.
  void take_means(const std::vector<double>& means);

  [[nodiscard]] const SkipCounts& skips() const { return skips_; }
  // Of the last step that was told.
  [[nodiscard]] std::uint64_t last_step() const { return last_step_; }
  // Hands all events over, so that a checkpoint is not ahead of them.
  void flush();
  void finish();

 private:
  struct Pending {
    StepReport report;
    at::Tensor device_values;  // undefined once read
    std::vector<double> host_values;
  };
  std::vector<LossTerm> loss_terms(const std::vector<double>& means) const;
  void tell(const StepReport& report);
  void check_events(const Result<void>& done);

  const std::vector<std::string> names_;
  SkipCounts skips_;
  std::uint64_t last_step_ = 0;
  std::optional<Progress> progress_;
  std::optional<EventWriter> events_;
  std::deque<Pending> pending_;
};

}  // namespace hvd::petrv2
