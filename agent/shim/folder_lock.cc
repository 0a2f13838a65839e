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

bool is_older(int folder, Nanos age) {
  struct stat info {};
  if (::fstat(folder, &info) != 0) return false;
  const Nanos changed =
      std::chrono::seconds(info.st_mtim.tv_sec) + std::chrono::nanoseconds(info.st_mtim.tv_nsec);
  return realtime_now() - changed >= age;
}

}  // namespace hvd
