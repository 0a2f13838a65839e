#include "training/petrv2/trainer/step_log.h"

#include <chrono>

#include "base/log.h"

namespace hvd::petrv2 {
namespace {

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The sums that a line shows; the terms themselves go to JSON and TensorBoard.
struct TermGroup {
  const char* name;
  const char* prefix;
};
constexpr TermGroup kGroups[] = {{"class", "loss_cls."},
                                 {"box", "loss_box."},
                                 {"dn_class", "dn_loss_cls."},
                                 {"dn_box", "dn_loss_box."}};

}  // namespace

StepLog::StepLog(std::vector<std::string> names, SkipCounts skips, std::optional<Progress> progress,
                 std::optional<EventWriter> events)
    : names_(std::move(names)),
      skips_(skips),
      progress_(std::move(progress)),
      events_(std::move(events)) {}

void StepLog::add(StepReport report, at::Tensor values) {
  pending_.push_back({std::move(report), std::move(values), {}});
}

void StepLog::read() {
  for (Pending& step : pending_) {
    if (!step.device_values.defined()) continue;
    const at::Tensor host = step.device_values.cpu();
    const auto* begin = host.const_data_ptr<double>();
    step.host_values.assign(begin, begin + host.numel());
    step.device_values.reset();
  }
}

std::vector<double> StepLog::values() const {
  return pending_.empty() ? std::vector<double>() : pending_.front().host_values;
}

std::vector<LossTerm> StepLog::loss_terms(const std::vector<double>& means) const {
  std::vector<LossTerm> terms = {{"total", means[0]}};
  for (const TermGroup& group : kGroups) {
    double sum = 0;
    bool is_there = false;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (!names_[i].starts_with(group.prefix)) continue;
      sum += means[i];
      is_there = true;
    }
    if (is_there) terms.push_back({group.name, sum});
  }
  return terms;
}

void StepLog::take_means(const std::vector<double>& means) {
  if (means.empty()) return;
  StepReport report = std::move(pending_.front().report);
  pending_.pop_front();
  const bool is_skipped = means.back() > 0;
  skips_.total += is_skipped ? 1 : 0;
  skips_.in_a_row = is_skipped ? skips_.in_a_row + 1 : 0;
  last_step_ = report.step;
  report.num_skipped = skips_.total;
  report.grad_norm = means[names_.size() - 2];
  report.loss_terms = loss_terms(means);
  for (std::size_t i = 1; i + 2 < names_.size(); ++i) {
    report.details.push_back({names_[i], means[i]});
  }
  tell(report);
}

void StepLog::tell(const StepReport& report) {
  const double now = wall_time();
  if (events_) {
    check_events(
        events_->add_scalars(now, static_cast<std::int64_t>(report.step), to_scalars(report)));
  }
  if (!progress_) return;
  const auto told = progress_->report(report, std::chrono::steady_clock::now(), now);
  if (!told) log(LogLevel::kWarning, "{}; going on without it", told.error().message);
}

void StepLog::check_events(const Result<void>& done) {
  if (done) return;
  log(LogLevel::kWarning, "{}; going on without TensorBoard events", done.error().message);
  events_.reset();
}

void StepLog::flush() {
  if (events_) check_events(events_->flush());
}

void StepLog::finish() {
  if (events_) check_events(events_->close());
  if (!progress_) return;
  const auto told = progress_->finish(std::chrono::steady_clock::now());
  if (!told) log(LogLevel::kWarning, "{}", told.error().message);
}

}  // namespace hvd::petrv2
