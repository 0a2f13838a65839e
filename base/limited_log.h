// Log lines that strangers cause, within the bounds of a LogLimit: what was held back is told when
// its window has ended, whether or not another line comes.
//
// Lifecycle: a window that is open keeps the loop from running dry until end(). What is held back
// when this goes is not told any more. Thread: the loop's.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/limit_timer.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "base/loop.h"

namespace hvd {

class LimitedLog {
 public:
  // `what` begins the lines about what was held back: "refused 10.0.0.9: 7 more in 10 s". `field`
  // is their key's name in the journal; lines themselves carry the caller's fields.
  LimitedLog(Loop& loop, LogLevel level, std::string what, std::string_view field,
             const LogLimit::Bounds& bounds = {})
      : level_(level), what_(std::move(what)), field_(field), limit_(bounds), timer_(loop) {}

  template <typename... Args>
  void log(std::string_view key, const LogFields& fields, fmt::format_string<Args...> format,
           Args&&... args) {
    const Nanos now = monotonic_now();
    tell_ended(now);
    const bool is_new_window = !limit_.ends();
    if (limit_.admits(key, now)) log_with(level_, fields, format, std::forward<Args>(args)...);
    if (is_new_window && !is_over_) {
      timer_.start(limit_.window(), [this] { tell_ended(monotonic_now()); });
    }
  }

  // What is held back is told now; from now on only with the next line.
  void end() {
    is_over_ = true;
    timer_.cancel();
    tell_ended(Nanos::max());
  }

 private:
  void tell_ended(Nanos now) {
    for (const LogLimit::HeldBack& it : limit_.take_ended(now)) {
      const bool has_key = !it.key.empty();
      const LogFields fields = has_key ? LogFields{{field_, it.key}} : LogFields{};
      log_with(level_, fields, "{} {}: {} more in {}", what_, has_key ? it.key : "others", it.count,
               format_duration(limit_.window()));
    }
  }

  const LogLevel level_;
  const std::string what_;
  const std::string_view field_;  // not owned, outlives this
  LogLimit limit_;
  LimitTimer timer_;
  bool is_over_ = false;
};

}  // namespace hvd
