#include "agent/shim/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

namespace hvd {

UniqueFd lock_folder(const std::string& path, int how) {
  UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.is_valid() && ::flock(folder.get(), how | LOCK_NB) != 0) folder.reset();
  return folder;
}

void touch_folder(int folder) { ::futimens(folder, nullptr); }

std::optional<Nanos> since_touched(int folder) {
  struct stat info {};
  if (::fstat(folder, &info) != 0) return std::nullopt;
  const Nanos changed =
      std::chrono::seconds(info.st_mtim.tv_sec) + std::chrono::nanoseconds(info.st_mtim.tv_nsec);
  return realtime_now() - changed;
}

bool is_older(int folder, Nanos age) {
  const auto since = since_touched(folder);
  return since && *since >= age;
}

}  // namespace hvd
