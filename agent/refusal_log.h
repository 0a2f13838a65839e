// The lines of an agent's log about those it did not let in or refused something: each says who,
// from where and why, and nobody can fill the log with them (log_limit.h). Thread: the loop's.
#pragma once

#include <string>

#include "base/limit_timer.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "base/loop.h"

namespace hvd {

class RefusalLog {
 public:
  explicit RefusalLog(Loop& loop) : limit_(LogLimit::Bounds()), timer_(loop) {}

  // `key`: whose lines are counted together, an address or a client.
  void write(const std::string& key, const LogFields& fields, const std::string& text) {
    tell_held_back();
    if (limit_.admits(key, monotonic_now())) log_with(LogLevel::kWarning, fields, "{}", text);
    if (const auto ends = limit_.ends()) {
      timer_.start(*ends - monotonic_now(), [this] { tell_held_back(); });
    }
  }

 private:
  void tell_held_back() {
    for (const LogLimit::HeldBack& held : limit_.take_ended(monotonic_now())) {
      log_with(LogLevel::kWarning, {{"HVDRUN_EVENT", "refused"}, {"HVDRUN_PEER", held.key}},
               "refused {}: {} more in {}", held.key.empty() ? "others" : held.key, held.count,
               format_duration(limit_.window()));
    }
  }

  LogLimit limit_;
  LimitTimer timer_;
};

}  // namespace hvd
