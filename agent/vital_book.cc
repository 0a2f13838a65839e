#include "agent/vital_book.h"

#include <algorithm>
#include <string>

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

constexpr int kLateLooks = 4;
constexpr std::int64_t kLeastShare = 1000;  // one part in so many

std::uint64_t least_ticks(Nanos period, long ticks_per_second) {
  const Nanos second = std::chrono::seconds(1);
  const std::int64_t ticks = VitalBook::kLooks * period / std::chrono::milliseconds(1) *
                             ticks_per_second / (second / std::chrono::milliseconds(1)) /
                             kLeastShare;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(ticks, 1));
}

}  // namespace

VitalBook::VitalBook(Nanos period, long ticks_per_second)
    : period_(period), least_ticks_(least_ticks(period, ticks_per_second)) {}

void VitalBook::start(std::uint32_t rank, pid_t pid, Nanos now) {
  Page page;
  page.pid = pid;
  page.heard = now;
  page.worked = now;
  pages_[rank] = page;
}

void VitalBook::hear(std::uint32_t rank, Nanos now) {
  const auto found = pages_.find(rank);
  if (found != pages_.end()) found->second.heard = now;
}

void VitalBook::look(const std::vector<ProcStat>& table, Nanos now) {
  const bool is_late = looked_ != Nanos(0) && now - looked_ > kLateLooks * period_;
  looked_ = now;
  std::vector<pid_t> leaders;
  for (const auto& [rank, page] : pages_) leaders.push_back(page.pid);
  const auto families = find_families(table, leaders);
  for (auto& [rank, page] : pages_) {
    const auto family = families.find(page.pid);
    look_at(page, family == families.end() ? std::vector<const ProcStat*>() : family->second, now);
    if (is_late) page.heard = page.worked = now;
  }
}

// A process that has ended unwaited takes its time out of the sum: that is a sign, too.
void VitalBook::look_at(Page& page, const std::vector<const ProcStat*>& family, Nanos now) const {
  page.state = family_state(family);
  const std::uint64_t ticks = family_ticks(family);
  const std::uint64_t change = ticks > page.ticks ? ticks - page.ticks : page.ticks - ticks;
  if (change < least_ticks_) return;
  page.ticks = ticks;
  page.worked = now;
}

v1::VitalSigns VitalBook::signs(Nanos now) const {
  v1::VitalSigns signs;
  for (const auto& [rank, page] : pages_) {
    v1::RankVitals& vitals = *signs.add_ranks();
    vitals.set_rank(rank);
    vitals.set_pid(page.pid);
    if (page.state != '\0') vitals.set_state(std::string(1, page.state));
    vitals.set_silent_ms(to_ms(now - page.heard));
    vitals.set_idle_ms(to_ms(now - page.worked));
  }
  return signs;
}

}  // namespace hvd
