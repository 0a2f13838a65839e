#include "launcher/silence.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/plural.h"
#include "base/process_state.h"
#include "proto/registration_table.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;

constexpr int kLooks = 8;  // of an agent within the limit
constexpr Nanos kShortestPeriod = milliseconds(100);
constexpr Nanos kLongestPeriod = std::chrono::seconds(60);

// Who does not run explains those who wait.
int badness(const v1::RankVitals& vitals) {
  if (is_stopped_state(vitals.state())) return 2;
  return vitals.state() == "D" ? 1 : 0;
}

}  // namespace

Nanos SilenceWatch::look_period(Nanos limit) {
  return std::clamp(limit / kLooks, kShortestPeriod, kLongestPeriod);
}

SilenceWatch::SilenceWatch(Nanos limit, std::vector<std::string> hosts)
    : limit_(limit), hosts_(std::move(hosts)) {}

void SilenceWatch::take(const v1::VitalSigns& signs, Nanos now) {
  for (const v1::RankVitals& vitals : signs.ranks()) {
    if (vitals.rank() >= hosts_.size()) continue;
    Page& page = pages_[vitals.rank()];
    if (page.vitals.pid() == 0) page.progressed = now;
    page.vitals = vitals;
  }
}

void SilenceWatch::take(const v1::WorkerBeat& beat, Nanos now) {
  const auto found = pages_.find(beat.rank());
  if (found == pages_.end()) return;
  Page& page = found->second;
  Progress progress{beat.generation(), beat.phase(), beat.step(), beat.scheduled(),
                    beat.completed()};
  if (page.progress == progress) return;
  page.progress = std::move(progress);
  page.progressed = now;
}

void SilenceWatch::rank_ended(std::uint32_t rank) { pages_.erase(rank); }

// The ages are those that its agent told last: while nothing comes of it nobody grows older.
Nanos SilenceWatch::silent_for(const Page& page, Nanos now) {
  const Nanos seen =
      std::min(milliseconds(page.vitals.silent_ms()), milliseconds(page.vitals.idle_ms()));
  return page.progress ? std::min(seen, now - page.progressed) : seen;
}

std::optional<SilenceWatch::Silence> SilenceWatch::inspect(Nanos now) const {
  // Ranks that wait for the culprit may have fallen silent a little before it.
  const Nanos nearly = limit_ / 2;
  const auto* blamed = static_cast<const std::pair<const std::uint32_t, Page>*>(nullptr);
  Nanos longest{0};
  std::vector<std::uint32_t> ranks;
  for (const auto& entry : pages_) {
    const Nanos silent = silent_for(entry.second, now);
    longest = std::max(longest, silent);
    if (silent < nearly) continue;
    ranks.push_back(entry.first);
    const int difference =
        blamed == nullptr ? 1 : badness(entry.second.vitals) - badness(blamed->second.vitals);
    if (difference > 0 || (difference == 0 && silent > silent_for(blamed->second, now))) {
      blamed = &entry;
    }
  }
  if (longest < limit_ || blamed == nullptr) return std::nullopt;
  const auto& [rank, page] = *blamed;
  return Silence{rank, page.vitals.pid(), ranks, text_of(rank, page, silent_for(page, now), ranks)};
}

std::string SilenceWatch::text_of(std::uint32_t rank, const Page& page, Nanos silent,
                                  const std::vector<std::uint32_t>& ranks) const {
  std::string text = fmt::format("rank {} ({}, pid {}) has given no sign of life for {}", rank,
                                 hosts_[rank], page.vitals.pid(), format_duration(silent));
  const std::string state = process_state_text(page.vitals.state());
  if (!state.empty()) text += fmt::format(", it is {}", state);
  text += ": no output, no CPU time";
  if (page.progress) {
    text += fmt::format(", no progress told by its heartbeats ({} at step {})",
                        page.progress->phase, page.progress->step);
  }
  std::vector<std::uint32_t> others = ranks;
  std::erase(others, rank);
  if (!others.empty()) {
    text += fmt::format("; silent, too: {}", rank_list(others));
  }
  return text + fmt::format(" (--stall-timeout {})", format_duration(limit_));
}

}  // namespace hvd
