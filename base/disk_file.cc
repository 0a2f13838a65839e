#include "base/disk_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>

namespace hvd {

int write_at(int fd, std::string_view data, std::uint64_t offset) {
  while (!data.empty()) {
    const ssize_t n = pwrite(fd, data.data(), data.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : ENOSPC;
    data.remove_prefix(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return 0;
}

int read_at(int fd, char* data, std::size_t size, std::uint64_t offset) {
  while (size > 0) {
    const ssize_t n = pread(fd, data, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    data += n;
    size -= static_cast<std::size_t>(n);
    offset += static_cast<std::uint64_t>(n);
  }
  return 0;
}

int replace_file(const std::string& path, std::string_view text, unsigned mode) {
  const std::string fresh = path + ".new";
  unlink(fresh.c_str());
  const UniqueFd file(open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  int why = file.is_valid() ? write_at(file.get(), text, 0) : errno;
  if (why == 0 && fsync(file.get()) != 0) why = errno;
  if (why == 0 && rename(fresh.c_str(), path.c_str()) != 0) why = errno;
  if (why != 0) unlink(fresh.c_str());
  return why;
}

// O_TMPFILE where the file system has it, else a name that is taken away at once.
UniqueFd open_unnamed(const std::string& folder) {
  UniqueFd file(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.is_valid()) return file;
  std::string name = folder + "/hvdrun-XXXXXX";
  file.reset(mkostemp(name.data(), O_CLOEXEC));
  if (file.is_valid()) unlink(name.c_str());
  return file;
}

}  // namespace hvd
