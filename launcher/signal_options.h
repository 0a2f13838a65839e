// The options about signals and standard input: what the user asks for. Pure.
#pragma once

#include <signal.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace hvd {

struct Occurrence;

struct TimeoutSignal {
  int signal = 0;
  Nanos before{0};  // so long before the time limit of the job
};

struct SignalRequest {
  int stop_signal = SIGTERM;  // first signal of the stop ladder
  std::optional<TimeoutSignal> timeout_signal;
  std::vector<int> forwarded = {SIGUSR1, SIGUSR2};  // from hvdrun to the leader of every rank
  bool passes_input = false;                        // standard input goes to rank 0
};

[[nodiscard]] Result<void> set_signal_option(SignalRequest& request, const Occurrence& it);

// When all options are known: whether the signal before the time limit has one, and time before it.
[[nodiscard]] Result<void> check_timeout_signal(const SignalRequest& request,
                                                const std::optional<Nanos>& timeout);

// "TERM", "SIGTERM", "sigterm", "15", "RTMIN+1" -> number; nullopt: there is no such signal, or the
// C library keeps it for itself.
[[nodiscard]] std::optional<int> parse_signal(std::string_view text);

}  // namespace hvd
