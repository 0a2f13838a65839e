#include "agent/stage_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/disk_file.h"
#include "base/sha256.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostBytes = 1U << 30U;  // of one file: a larger one is sent each time

struct Kept {
  fs::file_time_type used;
  std::uint64_t size = 0;
  fs::path path;
};

std::vector<Kept> list(const std::string& folder) {
  std::vector<Kept> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;
    Kept file{entry->last_write_time(gone), 0, entry->path()};
    if (!gone) file.size = entry->file_size(gone);
    if (!gone) files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

StageCache::StageCache(std::string folder) : folder_(std::move(folder)) {
  if (!folder_.empty()) mkdir(folder_.c_str(), 0700);
}

std::string StageCache::path_of(std::string_view sum) const {
  return fmt::format("{}/{}", folder_, to_hex(sum));
}

UniqueFd StageCache::find(std::string_view sum) const {
  if (folder_.empty()) return {};
  UniqueFd file(open(path_of(sum).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.is_valid()) futimens(file.get(), nullptr);
  return file;
}

UniqueFd StageCache::make(std::uint64_t size) const {
  if (folder_.empty() || size > kMostBytes) return {};
  return open_unnamed(folder_);
}

// Linked by way of /proc, which needs no privilege. Another agent may have been first.
void StageCache::keep(int file, std::string_view sum) const {
  const std::string unnamed = fmt::format("/proc/self/fd/{}", file);
  linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, path_of(sum).c_str(), AT_SYMLINK_FOLLOW);
}

void StageCache::forget(std::string_view sum) const { unlink(path_of(sum).c_str()); }

void StageCache::trim(std::uint64_t cap_bytes) const {
  if (folder_.empty()) return;
  std::vector<Kept> files = list(folder_);
  std::uint64_t total = 0;
  for (const Kept& file : files) total += file.size;
  std::sort(files.begin(), files.end(),
            [](const Kept& a, const Kept& b) { return a.used < b.used; });
  for (const Kept& file : files) {
    if (total <= cap_bytes) return;
    if (unlink(file.path.c_str()) == 0) total -= file.size;
  }
}

}  // namespace hvd
