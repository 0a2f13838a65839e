#include "launcher/hvdctl/control_jobs.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/shown.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

constexpr std::size_t kAllDigits = 32;
constexpr std::size_t kToldDigits = 8;  // of the id of another's job; the rest are zeros

bool is_in_part(const ClusterJob& job) {
  return job.id.find_first_not_of('0', kToldDigits) == std::string::npos;
}

}  // namespace

std::int64_t ClusterJob::since() const {
  const auto earliest = std::min_element(
      parts.begin(), parts.end(),
      [](const JobPart& a, const JobPart& b) { return a.status.since < b.status.since; });
  return earliest->status.since;
}

std::vector<ClusterJob> join_jobs(const std::vector<NodeReport>& reports) {
  std::map<std::string, ClusterJob> by_id;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    if (!reports[i].status) continue;
    for (const JobStatus& status : reports[i].status->jobs) {
      ClusterJob& job = by_id[status.id];
      job.id = status.id;
      job.parts.push_back({i, reports[i].name, status});
    }
  }
  std::vector<ClusterJob> jobs;
  for (auto& [id, job] : by_id) {
    std::stable_sort(job.parts.begin(), job.parts.end(), [](const JobPart& a, const JobPart& b) {
      return a.status.index < b.status.index;
    });
    jobs.push_back(std::move(job));
  }
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const ClusterJob& a, const ClusterJob& b) { return a.since() < b.since(); });
  return jobs;
}

std::size_t shown_digits(const std::vector<ClusterJob>& jobs) {
  constexpr std::size_t kFewest = 8;
  for (std::size_t size = kFewest; size < kAllDigits; ++size) {
    std::set<std::string_view> seen;
    const bool all_differ = std::all_of(jobs.begin(), jobs.end(), [&](const ClusterJob& job) {
      return seen.insert(std::string_view(job.id).substr(0, size)).second;
    });
    if (all_differ) return size;
  }
  return kAllDigits;
}

Result<void> check_job_word(std::string_view word) {
  constexpr std::size_t kFewest = 6;
  const bool is_hex = word.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (is_hex && word.size() >= kFewest && word.size() <= kAllDigits) return {};
  return make_error(ExitCode::kUsage,
                    "{} is no job; give the {} digits (0-9, a-f) of its id, or the first {} or "
                    "more; hvdctl jobs shows them",
                    show(word), kAllDigits, kFewest);
}

Result<ClusterJob> find_job(const std::vector<ClusterJob>& jobs, std::string_view beginning) {
  std::vector<const ClusterJob*> found;
  for (const ClusterJob& job : jobs) {
    const std::size_t told = is_in_part(job) ? kToldDigits : kAllDigits;
    const bool is_it =
        std::string_view(job.id).substr(0, told).starts_with(beginning.substr(0, told));
    if (is_it) found.push_back(&job);
  }
  if (found.size() == 1 && is_in_part(*found.front())) {
    return make_error("job {} is {}'s; only its owner and administrators of the node may end it",
                      found.front()->id.substr(0, kToldDigits),
                      shown(found.front()->parts.front().status.client));
  }
  if (found.size() == 1) return *found.front();
  if (found.empty()) {
    return make_error("no job here begins with {}; hvdctl jobs shows those that are there",
                      beginning);
  }
  std::vector<std::string_view> ids;
  for (const ClusterJob* job : found) ids.emplace_back(job->id);
  return make_error("{} is the beginning of {} jobs: {}; give more digits", beginning, ids.size(),
                    fmt::join(ids, ", "));
}

}  // namespace hvd
