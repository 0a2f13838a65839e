#include "agent/shim/dead_cgroups.h"

#include <sys/file.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "agent/shim/folder_lock.h"
#include "agent/shim/job_cgroup.h"
#include "base/parse_number.h"

namespace hvd {
namespace {

constexpr std::string_view kStart = "hvd-";
constexpr std::size_t kJobIdSize = 32;

}  // namespace

bool is_job_cgroup_name(std::string_view name) {
  if (!name.starts_with(kStart)) return false;
  const std::string_view job = name.substr(kStart.size()).substr(0, kJobIdSize);
  if (job.find_first_not_of("0123456789abcdef") != std::string_view::npos) return false;
  const std::size_t number = kStart.size() + kJobIdSize + std::string_view("-n").size();
  const auto node = parse_number<std::uint32_t>(name.substr(std::min(number, name.size())));
  return node && name == job_cgroup_name(job, *node);
}

void remove_dead_cgroups(const std::string& parent, Nanos age) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!is_job_cgroup_name(entry->path().filename().native())) continue;
    const UniqueFd lock = lock_folder(entry->path(), LOCK_EX);
    if (!lock.is_valid() || !is_older(lock.get(), age)) continue;
    const auto cgroup = JobCgroup::open(entry->path());
    if (cgroup && !cgroup->is_populated()) cgroup->remove();
  }
}

}  // namespace hvd
