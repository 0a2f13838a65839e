#include "training/petrv2/step_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/plural.h"

namespace hvd::petrv2 {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;

double gib(std::uint64_t num_bytes) { return static_cast<double>(num_bytes) / kGib; }

std::string eta_text(double seconds) {
  constexpr double kMost = 1e9;  // 32 years: beyond it, the nanoseconds would overflow
  if (!std::isfinite(seconds) || seconds < 0 || seconds > kMost) return "-";
  return format_duration(std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(seconds)));
}

}  // namespace

void StepWindow::Mean::add(double value) {
  if (!std::isfinite(value)) return;
  sum_ += value;
  ++count_;
}

std::string StepWindow::Mean::text(const char* format) const {
  if (count_ == 0) return "-";
  return fmt::format(fmt::runtime(format), sum_ / static_cast<double>(count_));
}

void StepWindow::add(const StepReport& report) {
  last_ = report;
  loss_terms_.resize(report.loss_terms.size());
  for (std::size_t i = 0; i < loss_terms_.size(); ++i) {
    loss_terms_[i].add(report.loss_terms[i].value);
  }
  grad_norm_.add(report.grad_norm);
  data_wait_.add(report.data_wait_s);
  ++num_steps_;
}

void StepWindow::clear() { *this = StepWindow(); }

std::string StepWindow::line() const {
  std::string text = fmt::format("step {} epoch {} loss", last_.step, last_.epoch);
  for (std::size_t i = 0; i < loss_terms_.size(); ++i) {
    const std::string value = loss_terms_[i].text("{:.4f}");
    // The first is the total, the others what it is made of.
    text += i == 0 ? " " + value
                   : fmt::format("{}{} {}", i == 1 ? " (" : ", ", last_.loss_terms[i].name, value);
  }
  if (loss_terms_.size() > 1) text += ")";
  text += fmt::format(" lr {:.2e} grad norm {} {:.3g} samples/s data wait {} memory {:.2f} GiB",
                      last_.lr, grad_norm_.text("{:.3g}"), last_.samples_per_s,
                      data_wait_.text("{:.3f} s"), gib(last_.memory_bytes));
  text += " ETA " + eta_text(last_.eta_s);
  if (last_.num_skipped > 0) text += ", " + counted(last_.num_skipped, "step") + " skipped";
  return text;
}

std::string json_line(const StepReport& report, double wall_time) {
  nlohmann::ordered_json loss = nlohmann::ordered_json::object();
  for (const auto* terms : {&report.loss_terms, &report.details}) {
    for (const LossTerm& term : *terms) loss[term.name] = term.value;
  }
  const nlohmann::ordered_json json = {{"time", wall_time},
                                       {"step", report.step},
                                       {"epoch", report.epoch},
                                       {"samples_seen", report.samples_seen},
                                       {"loss", loss},
                                       {"lr", report.lr},
                                       {"grad_norm", report.grad_norm},
                                       {"num_skipped", report.num_skipped},
                                       {"samples_per_s", report.samples_per_s},
                                       {"data_wait_s", report.data_wait_s},
                                       {"memory_bytes", report.memory_bytes},
                                       {"eta_s", report.eta_s}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::vector<Scalar> to_scalars(const StepReport& report) {
  std::vector<Scalar> scalars;
  for (const auto* terms : {&report.loss_terms, &report.details}) {
    for (const LossTerm& term : *terms) scalars.push_back({"loss/" + term.name, term.value});
  }
  scalars.push_back({"optimiser/lr", report.lr});
  if (std::isfinite(report.grad_norm)) {
    scalars.push_back({"optimiser/grad_norm", report.grad_norm});
  }
  scalars.push_back({"optimiser/num_skipped", static_cast<double>(report.num_skipped)});
  scalars.push_back({"speed/samples_per_s", report.samples_per_s});
  scalars.push_back({"speed/data_wait_s", report.data_wait_s});
  scalars.push_back({"memory/gib", gib(report.memory_bytes)});
  return scalars;
}

}  // namespace hvd::petrv2
