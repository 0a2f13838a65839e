#include "training/petrv2/trainer/trainer.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "runtime/worker_exit.h"
#include "training/petrv2/trainer/device.h"
#include "training/petrv2/trainer/last_word.h"
#include "training/petrv2/trainer/stop_signals.h"

namespace hvd::petrv2 {
namespace {

constexpr int kInterrupted = 130;
constexpr int kTerminated = static_cast<int>(WorkerExit::kTerminated);

double seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

Trainer::Trainer(const TrainerParts& parts, Schedule schedule, double base_rate,
                 TrainPosition position, std::uint64_t num_steps_to_do)
    : parts_(parts),
      schedule_(schedule),
      base_rate_(base_rate),
      num_steps_to_do_(num_steps_to_do),
      position_(position),
      saved_step_(position.step) {}

Normalisers Trainer::normalisers(const StepPlan& plan) const {
  const std::size_t batch = parts_.sampler.options().batch_size;
  const double num_micro_batches = static_cast<double>(plan.samples.size() / batch);
  Normalisers sum{0, 0};
  for (std::size_t begin = 0; begin < plan.samples.size(); begin += batch) {
    std::vector<std::int64_t> num_boxes;
    for (std::size_t i = begin; i < begin + batch; ++i) {
      num_boxes.push_back(parts_.records.samples()[plan.samples[i]].num_boxes);
    }
    const Normalisers own = count_positives(parts_.model.config(), num_boxes);
    sum.boxes += own.boxes;
    sum.dn_boxes += own.dn_boxes;
  }
  return {sum.boxes / num_micro_batches, sum.dn_boxes / num_micro_batches};
}

// What this rank tells with the step that has begun, and what all told with the one before. So the
// device is read only where its work is done, and a wish is fulfilled one step after it was told.
Result<std::vector<double>> Trainer::exchange() {
  parts_.log.read();
  parts_.spans.tell_last();
  if (auto done = take_riders(); !done) return tl::unexpected(done.error());
  return to_riders({is_stop_wanted(), take_save_wish()}, parts_.log.values(),
                   parts_.log.num_values());
}

Result<void> Trainer::take_riders() {
  if (!riders_.defined()) return {};
  const at::Tensor host = std::exchange(riders_, {}).cpu();
  const auto* begin = host.const_data_ptr<double>();
  const Agreement agreement = from_riders({begin, static_cast<std::size_t>(host.numel())});
  agreed_.wants_stop |= agreement.wishes.wants_stop;
  agreed_.wants_save |= agreement.wishes.wants_save;
  return take_means(agreement.means);
}

Result<void> Trainer::take_means(const std::vector<double>& means) {
  if (means.empty()) return {};
  parts_.log.take_means(means);
  position_.num_skipped = parts_.log.skips().total;
  position_.num_skipped_in_a_row = parts_.log.skips().in_a_row;
  return check_skips();
}

Result<void> Trainer::check_skips() const {
  const SkipCounts& skips = parts_.log.skips();
  if (skips.in_a_row < parts_.options.max_skipped) return {};
  return worker_error(WorkerExit::kNotFinite,
                      "step {}: the gradient was not finite in {} steps in a row (--max-skipped); "
                      "lower the learning rate; where it was fp16, bf16 has a wider range",
                      parts_.log.last_step(), skips.in_a_row);
}

StepReport Trainer::report_of(const StepPlan& plan, double lr) {
  const SteadyTime now = std::chrono::steady_clock::now();
  const double duration = seconds(now - last_step_end_);
  const auto wait = parts_.feed.data_wait();
  StepReport report;
  report.step = position_.step;
  report.epoch = plan.position.epoch;
  report.samples_seen = position_.samples_seen;
  report.lr = lr;
  report.samples_per_s = static_cast<double>(plan.samples.size()) / duration;
  report.data_wait_s = seconds(wait - last_data_wait_);
  report.memory_bytes = peak_memory(parts_.model.parameters().front().tensor.device());
  report.eta_s = duration * static_cast<double>(num_steps_to_do_ - num_steps_done_);
  last_step_end_ = now;
  last_data_wait_ = wait;
  return report;
}

Result<void> Trainer::run_step(StepData data) {
  const StepPlan& plan = *data.plan;
  parts_.activity.update([this](Activity& activity) {
    activity.phase = "running";
    activity.step = position_.step + 1;
  });
  parts_.spans.start_step(position_.step + 1);
  StepInputs inputs;
  inputs.micro_batches = std::move(data.micro_batches);
  inputs.normalisers = normalisers(plan);
  inputs.epoch = plan.position.epoch;
  inputs.lr = schedule_.rate(base_rate_, inputs.epoch, position_.samples_seen);
  const auto size = static_cast<std::uint64_t>(parts_.communicator.size());
  const auto rank = static_cast<std::uint64_t>(parts_.communicator.rank());
  inputs.first_position = plan.position.samples_seen + plan.samples.size() / size * rank;
  auto outcome = parts_.runner.run(inputs, [this] { return exchange(); });
  if (!outcome) return tl::unexpected(outcome.error());
  riders_ = std::move(outcome->riders);
  ++position_.step;
  ++num_steps_done_;
  position_.samples_seen += plan.samples.size();
  position_.sampler = plan.after;
  parts_.log.add(report_of(plan, inputs.lr), std::move(outcome->values));
  log_samples(plan);
  return {};
}

void Trainer::log_samples(const StepPlan& plan) {
  if (parts_.sample_log == nullptr) return;
  std::string line = fmt::format("{}", position_.step);
  for (const std::uint64_t index : plan.samples) {
    line += ' ';
    line += parts_.records.samples()[index].token;
  }
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), parts_.sample_log);
  if (std::fflush(parts_.sample_log) == 0) return;
  log(LogLevel::kWarning, "--sample-log cannot be written: {}; going on without it",
      std::strerror(errno));
  parts_.sample_log = nullptr;
}

// Every rank calls it at the same step. All steps are told of first, so that the counts are right.
Result<void> Trainer::save() {
  if (auto done = take_riders(); !done) return done;
  while (!parts_.log.is_empty()) {
    parts_.log.read();
    const auto agreed = parts_.agreement.agree(parts_.log.values());
    if (!agreed) return tl::unexpected(agreed.error());
    if (auto done = take_means(agreed->means); !done) return done;
  }
  parts_.spans.tell_all();
  agreed_.wants_save = false;
  if (parts_.options.out.empty() || saved_step_ == position_.step) return {};
  parts_.log.flush();
  Result<void> outcome;
  if (parts_.store != nullptr) {
    auto saved = parts_.state.save(*parts_.store, position_, parts_.config.name, parts_.data);
    if (!saved) outcome = tl::unexpected(saved.error());
    if (saved) {
      for (const std::string& note : saved->notes) log(LogLevel::kWarning, "{}", note);
    }
  }
  saved_step_ = position_.step;
  return parts_.agreement.share_outcome(outcome);
}

Result<int> Trainer::run() {
  last_step_end_ = std::chrono::steady_clock::now();
  while (num_steps_done_ < num_steps_to_do_) {
    auto data = parts_.feed.next();
    if (!data) return with_exit(data.error(), WorkerExit::kData);
    const auto plan = data->plan;
    if (!plan) break;
    if (auto done = run_step(std::move(*data)); !done) return tl::unexpected(done.error());
    const bool is_epoch_end = position_.sampler.epoch != plan->position.epoch;
    const std::uint64_t every = parts_.options.save_every;
    const bool is_due = is_epoch_end || (every > 0 && position_.step % every == 0);
    if (is_due || agreed_.wants_save || agreed_.wants_stop) {
      if (auto done = save(); !done) return tl::unexpected(done.error());
    }
    if (!agreed_.wants_stop) continue;
    if (is_stop_wanted()) tell_received_signal(is_interrupted() ? SIGINT : SIGTERM);
    return is_interrupted() ? kInterrupted : kTerminated;
  }
  if (auto done = save(); !done) return tl::unexpected(done.error());
  return 0;
}

}  // namespace hvd::petrv2
