#include "agent/dead_job_dirs.h"

#include <sys/file.h>

#include <algorithm>
#include <filesystem>

#include "agent/job_dir.h"
#include "agent/shim/folder_lock.h"
#include "agent/shim/job_dir.h"

namespace hvd {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

}  // namespace

std::string_view job_digits(std::string_view name) {
  const auto first = name.find('-');
  const auto second = name.find('-', first + 1);
  if (first != kJobDirDigits || second == std::string_view::npos) return {};
  const auto node = name.substr(first + 1, second - first - 1);
  const auto fresh = name.substr(second + 1);
  const bool is_name =
      name.substr(0, first).find_first_not_of(kHex) == std::string_view::npos && !node.empty() &&
      node.find_first_not_of("0123456789") == std::string_view::npos &&
      fresh.size() == kJobDirDigits && fresh.find_first_not_of(kHex) == std::string_view::npos;
  return is_name ? name.substr(0, first) : std::string_view();
}

void remove_dead_job_dirs(const std::vector<std::string>& parents,
                          const std::set<std::string>& kept, Nanos age) {
  for (const std::string& parent : parents) {
    std::error_code error;
    for (std::filesystem::directory_iterator entry(parent, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      const std::string_view digits = job_digits(name);
      if (digits.empty()) continue;
      const bool is_kept = std::any_of(kept.begin(), kept.end(), [digits](const std::string& job) {
        return job.starts_with(digits);
      });
      if (is_kept) continue;
      const UniqueFd lock = lock_folder(entry->path(), LOCK_EX);
      if (lock.is_valid() && is_older(lock.get(), age)) remove_job_dir(entry->path());
    }
  }
}

}  // namespace hvd
