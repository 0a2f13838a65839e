#include "agent/dead_job_dirs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <filesystem>

#include "agent/job_dir.h"
#include "agent/shim/folder_lock.h"
#include "agent/shim/job_dir.h"

namespace hvd {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

// Calls `look` with the path and name of each job folder.
template <typename Look>
void for_each_job_dir(const std::vector<std::string>& parents, const Look& look) {
  for (const std::string& parent : parents) {
    std::error_code error;
    for (std::filesystem::directory_iterator entry(parent, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (!job_digits(name).empty()) look(entry->path().string(), name);
    }
  }
}

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

std::optional<Nanos> since_sign_of(const std::vector<std::string>& parents, std::string_view job_id,
                                   std::uint32_t node) {
  const std::string begin = fmt::format("{}-{}-", job_id.substr(0, kJobDirDigits), node);
  std::optional<Nanos> since;
  for_each_job_dir(parents, [&](const std::string& path, const std::string& name) {
    if (!name.starts_with(begin)) return;
    const UniqueFd folder(::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (folder.is_valid()) since = since_touched(folder.get());
  });
  return since;
}

void remove_dead_job_dirs(const std::vector<std::string>& parents,
                          const std::set<std::string>& kept, Nanos age) {
  for_each_job_dir(parents, [&](const std::string& path, const std::string& name) {
    const bool is_kept = std::any_of(kept.begin(), kept.end(), [&](const std::string& job) {
      return job.starts_with(job_digits(name));
    });
    if (is_kept) return;
    const UniqueFd lock = lock_folder(path, LOCK_EX);
    if (lock.is_valid() && is_older(lock.get(), age)) remove_job_dir(path);
  });
}

}  // namespace hvd
