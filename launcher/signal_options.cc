#include "launcher/signal_options.h"

#include <string.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/parse_number.h"
#include "launcher/argv_scan.h"
#include "launcher/duration.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

// What hvdrun itself acts on, what no program receives, and what tells of a program's own faults.
constexpr std::array kNotForwarded = {SIGKILL, SIGSTOP, SIGINT,  SIGTERM, SIGQUIT, SIGHUP,  SIGTSTP,
                                      SIGTTIN, SIGTTOU, SIGCHLD, SIGPIPE, SIGCONT, SIGSEGV, SIGBUS,
                                      SIGILL,  SIGFPE,  SIGABRT, SIGTRAP, SIGSYS};

Result<int> signal_of(std::string_view text, std::string_view name) {
  if (const auto signal = parse_signal(text)) return *signal;
  return make_error(ExitCode::kUsage,
                    "{} {}: there is no such signal; write a name or a number, as in USR1 or 10",
                    name, show(text));
}

// One that a process can answer to.
Result<int> polite_signal_of(std::string_view text, std::string_view name) {
  auto signal = signal_of(text, name);
  if (!signal || (*signal != SIGKILL && *signal != SIGSTOP)) return signal;
  return make_error(ExitCode::kUsage,
                    "{} {}: no process can answer to it; name another signal, or --grace 0 to kill "
                    "at once when the job is stopped",
                    name, show(text));
}

Result<void> set_stop_signal(SignalRequest& request, std::string_view text) {
  const auto signal = polite_signal_of(text, "--stop-signal");
  if (!signal) return tl::unexpected(signal.error());
  request.stop_signal = *signal;
  return {};
}

Result<void> set_timeout_signal(SignalRequest& request, std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) {
    return make_error(ExitCode::kUsage,
                      "--timeout-signal {}: write a signal and how long before --timeout, as in "
                      "USR1@60",
                      show(text));
  }
  const auto signal = polite_signal_of(text.substr(0, at), "--timeout-signal");
  if (!signal) return tl::unexpected(signal.error());
  const auto before = parse_duration(text.substr(at + 1), "--timeout-signal");
  if (!before) return tl::unexpected(before.error());
  request.timeout_signal = TimeoutSignal{*signal, *before};
  return {};
}

Result<void> set_forwarded(SignalRequest& request, std::string_view list) {
  request.forwarded.clear();
  if (list == "none") return {};
  while (true) {
    const std::string_view word = list.substr(0, list.find(','));
    const auto signal = signal_of(word, "--forward-signals");
    if (!signal) return tl::unexpected(signal.error());
    if (std::find(kNotForwarded.begin(), kNotForwarded.end(), *signal) != kNotForwarded.end()) {
      return make_error(ExitCode::kUsage,
                        "--forward-signals {}: hvdrun needs this signal itself or cannot receive "
                        "it; leave it out, or send it to the ranks on their nodes",
                        show(word));
    }
    request.forwarded.push_back(*signal);
    if (word.size() == list.size()) return {};
    list.remove_prefix(word.size() + 1);
  }
}

// "RTMIN+3", "RTMAX-1", "RTMIN".
std::optional<int> parse_real_time(std::string_view name) {
  const bool is_from_least = name.starts_with("RTMIN");
  if (!is_from_least && !name.starts_with("RTMAX")) return std::nullopt;
  name.remove_prefix(5);
  if (name.empty()) return is_from_least ? SIGRTMIN : SIGRTMAX;
  if (name.front() != (is_from_least ? '+' : '-')) return std::nullopt;
  const auto distance = parse_number<int>(name.substr(1));
  if (!distance || *distance < 0 || *distance > SIGRTMAX - SIGRTMIN) return std::nullopt;
  return is_from_least ? SIGRTMIN + *distance : SIGRTMAX - *distance;
}

}  // namespace

std::optional<int> parse_signal(std::string_view text) {
  if (const auto number = parse_number<int>(text)) {
    const bool is_usual = *number > 0 && *number < 32;
    const bool is_real_time = *number >= SIGRTMIN && *number <= SIGRTMAX;
    return is_usual || is_real_time ? number : std::nullopt;
  }
  std::string name(text);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  if (name.starts_with("SIG")) name.erase(0, 3);
  if (const auto real_time = parse_real_time(name)) return real_time;
  for (int signal = 1; signal < 32; ++signal) {
    const char* known = sigabbrev_np(signal);
    if (known != nullptr && name == known) return signal;
  }
  return std::nullopt;
}

Result<void> set_signal_option(SignalRequest& request, const Occurrence& it) {
  switch (it.spec->id) {
    case OptionId::kStopSignal:
      return set_stop_signal(request, it.value);
    case OptionId::kTimeoutSignal:
      return set_timeout_signal(request, it.value);
    case OptionId::kForwardSignals:
      return set_forwarded(request, it.value);
    default:
      request.passes_input = !it.is_opposite;
      return {};
  }
}

Result<void> check_timeout_signal(const SignalRequest& request,
                                  const std::optional<Nanos>& timeout) {
  if (!request.timeout_signal) return {};
  if (!timeout) {
    return make_error(ExitCode::kUsage,
                      "--timeout-signal needs a time limit; give --timeout TIME as well");
  }
  if (request.timeout_signal->before >= *timeout) {
    return make_error(
        ExitCode::kUsage,
        "--timeout-signal: {} before --timeout {} is before the start; give a shorter "
        "time",
        format_duration(request.timeout_signal->before), format_duration(*timeout));
  }
  return {};
}

}  // namespace hvd
