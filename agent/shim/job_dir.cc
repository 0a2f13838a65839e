#include "agent/shim/job_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>
#include <vector>

namespace hvd {
namespace {

// Each level holds a descriptor; a job that nests deeper keeps its folder.
constexpr int kMaxFolderDepth = 64;

int open_directory(int parent, const char* name) {
  return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

std::vector<std::string> list_names(DIR* dir) {
  std::vector<std::string> names;
  while (const dirent* entry = readdir(dir)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

// Empties the directory that `fd` is open on, and closes it.
void empty_directory(int fd, dev_t device, int depth) {
  struct stat status {};
  const bool is_ours =
      fstat(fd, &status) == 0 && status.st_dev == device && depth < kMaxFolderDepth;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(fdopendir(fd), closedir);
  if (!dir) {
    close(fd);
    return;
  }
  if (!is_ours) return;
  for (const std::string& name : list_names(dir.get())) {
    if (unlinkat(fd, name.c_str(), 0) == 0) continue;
    const int below = open_directory(fd, name.c_str());
    if (below < 0) continue;
    empty_directory(below, device, depth + 1);
    unlinkat(fd, name.c_str(), AT_REMOVEDIR);
  }
}

}  // namespace

bool remove_job_dir(const std::string& path) {
  if (path.size() < 2 || path[0] != '/') return false;
  const int fd = open_directory(AT_FDCWD, path.c_str());
  if (fd < 0) return errno == ENOENT;
  struct stat status {};
  if (fstat(fd, &status) != 0 || status.st_uid != geteuid()) {
    close(fd);
    return false;
  }
  empty_directory(fd, status.st_dev, 0);
  return rmdir(path.c_str()) == 0;
}

}  // namespace hvd
