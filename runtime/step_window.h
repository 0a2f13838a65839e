// Which events of a timeline belong to the steps that were asked for. Pure.
//
// A step lasts from its start to the start of the next; an event belongs to the step in which it
// began, also if it is told later. What is told after the start of the second step behind the
// window comes too late.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace hvd {

class StepWindow {
 public:
  // Both inclusive. A window from step 0 on takes what happens before the first step, too.
  StepWindow(std::uint64_t first, std::uint64_t last) : first_(first), last_(last) {
    if (first_ == 0) begin_ = Nanos::min();
  }

  void start_step(std::uint64_t step, Nanos at) {
    if (end_) is_over_ = true;
    if (step > last_ && !end_) {
      end_ = at;
      is_over_ = !begin_;  // no step of it has been
    } else if (step >= first_ && !begin_) {
      begin_ = at;
    }
  }

  [[nodiscard]] bool holds(Nanos begin) const {
    return !is_over_ && begin_ && begin >= *begin_ && (!end_ || begin < *end_);
  }
  // Nothing more can belong to it.
  [[nodiscard]] bool is_over() const { return is_over_; }
  // Its last step has ended.
  [[nodiscard]] bool has_ended() const { return end_.has_value(); }

 private:
  const std::uint64_t first_;
  const std::uint64_t last_;
  std::optional<Nanos> begin_;
  std::optional<Nanos> end_;
  bool is_over_ = false;
};

}  // namespace hvd
