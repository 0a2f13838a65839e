#include "launcher/restart.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace hvd {
namespace {

using std::chrono::seconds;

constexpr int kFailuresOfABadHost = 2;
constexpr Nanos kFirstPause = seconds(1);
constexpr Nanos kLongestPause = seconds(30);

// Of our own workers: what was wrong is wrong in the next attempt, too.
bool is_lasting(int worker_code) { return worker_code >= 73 && worker_code <= 75; }

std::uint64_t num_slots(const std::vector<HostSpec>& hosts) {
  return std::accumulate(
      hosts.begin(), hosts.end(), std::uint64_t{0},
      [](std::uint64_t sum, const HostSpec& host) { return sum + host.slots.value_or(0); });
}

std::vector<HostSpec> without(std::vector<HostSpec> hosts, const std::string& label) {
  std::erase_if(hosts, [&](const HostSpec& host) { return host.label() == label; });
  return hosts;
}

}  // namespace

bool is_retryable(const Cause& cause, bool has_run_before, bool has_spares) {
  switch (cause.kind) {
    case CauseKind::kExited:
      return !cause.uses_runtime || !is_lasting(cause.value);
    case CauseKind::kSignalled:
    case CauseKind::kLeftEarly:
    case CauseKind::kNodeLost:
    case CauseKind::kStalled:
      return true;
    case CauseKind::kNodeStopped:  // started there again, it would be stopped again
      return has_spares;
    case CauseKind::kStartFailed:
    case CauseKind::kStartTimeout:
      return has_run_before || has_spares;
    case CauseKind::kFailedToStart:
    case CauseKind::kTimeout:
    case CauseKind::kExitTimeout:
    case CauseKind::kUserSignal:
    case CauseKind::kRegistration:
    case CauseKind::kStdoutGone:
      return false;
  }
  return false;
}

Restarts::Restarts(RestartRequest request) : request_(std::move(request)) {}

// The first spare with which there are slots enough stands where the host stood, so that the others
// keep their ranks.
std::optional<std::vector<HostSpec>> Restarts::with_spare(const std::vector<HostSpec>& hosts,
                                                          const std::string& label,
                                                          std::uint32_t num_ranks) {
  for (auto spare = request_.spares.begin(); spare != request_.spares.end(); ++spare) {
    std::vector<HostSpec> replaced = hosts;
    for (HostSpec& host : replaced) {
      if (host.label() != label) continue;
      const auto slots = spare->slots ? spare->slots : host.slots;
      host = *spare;
      host.slots = slots;
      break;
    }
    if (num_slots(replaced) < num_ranks) continue;
    request_.spares.erase(spare);
    return replaced;
  }
  return std::nullopt;
}

Restarts::Decision Restarts::after(const AttemptEnd& end) {
  if (request_.most == 0 || !end.is_retryable) return {};
  if (count_ == request_.most) {
    return {.told = fmt::format("no restart: there {} already (--max-restarts)",
                                count_ == 1 ? "was one" : fmt::format("were {}", count_))};
  }
  for (const std::string& label : end.failed) ++num_failures_[label];
  Decision next{.is_on = true, .hosts = end.hosts};
  std::vector<std::string> left_out;
  for (const HostSpec& host : end.hosts) {
    const std::string& label = host.label();
    const bool is_unverified = end.unverified.contains(label);
    const auto failures = num_failures_.find(label);
    const bool is_bad = failures != num_failures_.end() && failures->second >= kFailuresOfABadHost;
    const bool is_unreached = end.has_not_started && end.failed.contains(label);
    if (!is_unverified && !is_bad && !is_unreached) continue;
    auto hosts = with_spare(next.hosts, label, end.num_ranks);
    if (!hosts && !is_unverified && !is_bad) continue;
    if (!hosts) hosts = without(next.hosts, label);
    const bool has_room = num_slots(*hosts) >= end.num_ranks;
    if (!has_room && !is_unverified) continue;
    if (!has_room) {
      return {.told =
                  fmt::format("no restart: {} may still run ranks of this attempt, and the other "
                              "hosts have no {} slots; name a host for it with --spare",
                              label, end.num_ranks)};
    }
    next.hosts = std::move(*hosts);
    left_out.push_back(label);
  }
  ++count_;
  next.pause = std::min(kFirstPause * (1 << std::min(count_ - 1, 5U)), kLongestPause);
  next.told = fmt::format("restart {} of {}{}{}", count_, request_.most,
                          left_out.empty() ? "" : " without ", fmt::join(left_out, ", "));
  return next;
}

}  // namespace hvd
