#include "launcher/stall.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/plural.h"
#include "base/process_state.h"
#include "launcher/watch_options.h"
#include "proto/registration_table.h"

namespace hvd {
namespace {

constexpr std::size_t kMaxNamedRanks = 8;
constexpr int kMaxNamedTensors = 6;
constexpr std::uint32_t kMaxRanks = 65536;
constexpr const char* kDisable = "HOROVOD_STALL_CHECK_DISABLE";
constexpr const char* kWarnAfter = "HOROVOD_STALL_CHECK_TIME_SECONDS";
constexpr const char* kShutDownAfter = kStallShutdownVariable;

std::optional<double> number_in(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  constexpr double kMost = 1e9;
  const bool is_number = end != text.c_str() && *end == '\0' && value >= 0 && value <= kMost;
  return is_number ? std::optional(value) : std::nullopt;
}

Nanos seconds_of(const EnvList& environment, const char* name, Nanos otherwise,
                 std::vector<std::string>& warnings) {
  const auto text = find_env(environment, name);
  if (!text || text->empty()) return otherwise;
  const auto value = number_in(*text);
  if (!value) {
    warnings.push_back(fmt::format("{}={} is no number of seconds: {}", name, *text,
                                   otherwise == Nanos(0)
                                       ? "it stays off, as without the variable"
                                       : format_duration(otherwise) + " is used"));
    return otherwise;
  }
  return std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(*value));
}

std::string tensors_text(const v1::WorkerBeat& beat) {
  const int num_named = std::min(beat.missing_size(), kMaxNamedTensors);
  const auto num_all =
      std::max(beat.num_missing(), static_cast<std::uint32_t>(beat.missing_size()));
  if (num_all == 0) return "";
  std::string text =
      fmt::format(", still lacks {}",
                  fmt::join(beat.missing().begin(), beat.missing().begin() + num_named, ", "));
  const auto num_left = num_all - static_cast<std::uint32_t>(num_named);
  if (num_left > 0) text += fmt::format(" and {} more", num_left);
  return text;
}

// "ranks 0-2 wait in X; rank 5 in Y" of what each does.
std::string grouped_text(const std::map<std::string, std::vector<std::uint32_t>>& groups,
                         const char* format_between) {
  std::vector<std::string> parts;
  for (const auto& [what, ranks] : groups) {
    parts.push_back(fmt::format("{}{}{}", rank_list(ranks), format_between, what));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace

StallSettings stall_settings(const EnvList& launcher, const EnvList& user) {
  const EnvList environment = merge_env({&launcher, &user}, {});
  StallSettings settings;
  const std::string disabled = env_value(environment, kDisable);
  settings.is_on = disabled.empty() || disabled == "0";
  if (!settings.is_on && disabled != "1") {
    settings.warnings.push_back(fmt::format(
        "{}={} is neither 0 nor 1: stalls are not looked for, as with 1", kDisable, disabled));
  }
  settings.warn_after = seconds_of(environment, kWarnAfter, settings.warn_after, settings.warnings);
  settings.shut_down_after =
      seconds_of(environment, kShutDownAfter, settings.shut_down_after, settings.warnings);
  if (settings.warn_after == Nanos(0)) settings.is_on = false;
  if (settings.shut_down_after > Nanos(0) && settings.shut_down_after < settings.warn_after) {
    settings.warnings.push_back(
        fmt::format("{} ({}) is less than {} ({}) and is ignored: a stalled job is not ended",
                    kShutDownAfter, format_duration(settings.shut_down_after), kWarnAfter,
                    format_duration(settings.warn_after)));
    settings.shut_down_after = Nanos(0);
  }
  return settings;
}

StallInspector::StallInspector(StallSettings settings, std::vector<std::string> hosts)
    : settings_(std::move(settings)), hosts_(std::move(hosts)) {}

void StallInspector::take(const v1::WorkerBeat& beat, Nanos now) {
  if (beat.rank() >= beat.size() || beat.size() > kMaxRanks) return;
  if (size_ > 0 && beat.generation() < generation_) return;
  if (size_ == 0 || beat.generation() > generation_) restart(beat, now);
  beats_[beat.rank()] = beat;
}

void StallInspector::restart(const v1::WorkerBeat& beat, Nanos now) {
  generation_ = beat.generation();
  size_ = beat.size();
  beats_.clear();
  since_ = now;
  next_warning_ = Nanos(0);
  dumped_.reset();
}

void StallInspector::rank_ended(std::uint32_t rank, std::string how) {
  ended_.emplace(rank, std::move(how));
}

std::uint64_t StallInspector::scheduled_of(std::uint32_t rank) const {
  const auto beat = beats_.find(rank);
  return beat == beats_.end() ? 0 : beat->second.scheduled();
}

std::uint64_t StallInspector::most_scheduled() const {
  std::uint64_t most = 0;
  for (const auto& [rank, beat] : beats_) most = std::max(most, beat.scheduled());
  return most;
}

StallInspector::Marker StallInspector::marker() const {
  Marker marker{std::numeric_limits<std::uint64_t>::max(), 0};
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    marker.least_scheduled = std::min(marker.least_scheduled, scheduled_of(rank));
  }
  for (const auto& [rank, beat] : beats_) {
    marker.most_completed = std::max(marker.most_completed, beat.completed());
  }
  return marker;
}

bool StallInspector::is_silent(std::uint32_t rank) const {
  const auto beat = beats_.find(rank);
  return beat != beats_.end() && beat->second.silent_ms() > 0 && !ended_.contains(rank);
}

std::vector<std::uint32_t> StallInspector::suspects() const {
  std::vector<std::uint32_t> result;
  const std::uint64_t most = most_scheduled();
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    if (scheduled_of(rank) < most || is_silent(rank)) result.push_back(rank);
  }
  return result;
}

// A rank that does not run at all explains one that is only behind.
std::uint32_t StallInspector::worst(const std::vector<std::uint32_t>& suspects) const {
  const auto badness = [this](std::uint32_t rank) {
    const auto beat = beats_.find(rank);
    const bool is_stopped = beat != beats_.end() && is_stopped_state(beat->second.process_state());
    return is_stopped ? 3 : is_silent(rank) ? 2 : ended_.contains(rank) ? 1 : 0;
  };
  return *std::max_element(suspects.begin(), suspects.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (badness(a) != badness(b)) return badness(a) < badness(b);
    if (scheduled_of(a) != scheduled_of(b)) return scheduled_of(a) > scheduled_of(b);
    return a > b;
  });
}

StallInspector::Findings StallInspector::inspect(Nanos now) {
  Findings findings;
  if (size_ == 0) return findings;
  inspect_start(now, findings);
  if (settings_.is_on) inspect_stall(now, findings);
  return findings;
}

void StallInspector::inspect_stall(Nanos now, Findings& findings) {
  const Marker marker = this->marker();
  const auto suspects = this->suspects();
  if (suspects.empty() || marker != marker_) {
    marker_ = marker;
    since_ = now;
    next_warning_ = now + settings_.warn_after;
    dumped_.reset();
    return;
  }
  const Nanos stalled = now - since_;
  if (now >= next_warning_ && stalled >= settings_.warn_after) {
    findings.warnings.push_back(stall_text(suspects, stalled, true));
    next_warning_ = now + settings_.warn_after;
  }
  if (settings_.shut_down_after == Nanos(0) || stalled < settings_.shut_down_after) return;
  if (!dumped_) {
    dumped_ = now;
    findings.dump = stall_text(suspects, stalled, false);
  } else if (now - *dumped_ >= kDumpTime) {
    findings.stall =
        Stall{worst(suspects),
              fmt::format("{} ({}={:g})", stall_text(suspects, stalled, false), kShutDownAfter,
                          std::chrono::duration<double>(settings_.shut_down_after).count())};
  }
}

// Before the ranks run there is no collective to compare: what counts is how far each has come.
void StallInspector::inspect_start(Nanos now, Findings& findings) {
  if (!start_deadline_ || now < *start_deadline_) return;
  start_deadline_.reset();
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    const auto beat = beats_.find(rank);
    const bool has_started =
        beat != beats_.end() && (beat->second.phase() == "running" ||
                                 beat->second.phase() == "finalizing" || ended_.contains(rank));
    if (has_started) continue;
    findings.warnings.push_back(
        fmt::format("not all ranks run within the time for their start: {}", stages_text()));
    return;
  }
}

std::string StallInspector::stages_text() const {
  std::map<std::string, std::vector<std::uint32_t>> stages;
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    const auto beat = beats_.find(rank);
    std::string stage = beat == beats_.end() ? "registered, no word since" : beat->second.phase();
    const std::string state = state_of(rank);
    if (is_silent(rank) && !state.empty()) stage += fmt::format(" ({})", state);
    stages[stage].push_back(rank);
  }
  return grouped_text(stages, ": ");
}

std::string StallInspector::stall_text(const std::vector<std::uint32_t>& suspects, Nanos stalled,
                                       bool has_tensors) const {
  // The worst one first: it is what most readers look for.
  std::vector<std::uint32_t> order = suspects;
  std::stable_partition(order.begin(), order.end(),
                        [first = worst(suspects)](std::uint32_t rank) { return rank == first; });
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < std::min(order.size(), kMaxNamedRanks); ++i) {
    missing.push_back(describe(order[i], has_tensors));
  }
  if (order.size() > kMaxNamedRanks) {
    missing.push_back(fmt::format("and {} more", counted(order.size() - kMaxNamedRanks, "rank")));
  }
  std::string text = fmt::format("no progress for {}: missing {}", format_duration(stalled),
                                 fmt::join(missing, "; "));
  const std::string waiting = waiting_text(suspects);
  return waiting.empty() ? text : text + "; " + waiting;
}

std::string StallInspector::describe(std::uint32_t rank, bool has_tensors) const {
  std::string text = fmt::format("rank {}", rank);
  if (rank < hosts_.size()) text += fmt::format(" on {}", hosts_[rank]);
  if (const auto ended = ended_.find(rank); ended != ended_.end()) {
    return text + ", " + ended->second;
  }
  const auto found = beats_.find(rank);
  if (found == beats_.end()) return text + ", no word since it registered";
  const v1::WorkerBeat& beat = found->second;
  text += fmt::format(", {} at step {}", beat.phase(), beat.step());
  if (const std::string state = state_of(rank); !state.empty()) text += ", " + state;
  return has_tensors ? text + tensors_text(beat) : text;
}

// What the agent told of a rank that is silent.
std::string StallInspector::state_of(std::uint32_t rank) const {
  if (!is_silent(rank)) return "";
  const v1::WorkerBeat& beat = beats_.at(rank);
  std::string text =
      fmt::format("no word for {}", format_duration(std::chrono::milliseconds(beat.silent_ms())));
  const std::string process = process_state_text(beat.process_state());
  return process.empty() ? text : fmt::format("{}, {}", process, text);
}

std::string StallInspector::waiting_text(const std::vector<std::uint32_t>& suspects) const {
  std::map<std::string, std::vector<std::uint32_t>> groups;
  for (const auto& [rank, beat] : beats_) {
    const bool is_suspect = std::binary_search(suspects.begin(), suspects.end(), rank);
    if (!is_suspect && !beat.waiting_for().empty()) groups[beat.waiting_for()].push_back(rank);
  }
  return groups.empty() ? "" : grouped_text(groups, " waiting for ");
}

}  // namespace hvd
