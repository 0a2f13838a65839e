#include "training/formats/disk_write.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/unique_fd.h"

namespace hvd {
namespace {

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::optional<std::uint64_t> free_bytes(const std::string& folder) {
  struct statvfs status {};
  if (::statvfs(folder.c_str(), &status) != 0) return std::nullopt;
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

std::string_view remedy(int errno_value) {
  switch (errno_value) {
    case ENOSPC:
      return "free some space or choose another folder";
    case EDQUOT:
      return "your quota is used up: delete files or choose another folder";
    case EFBIG:
      return "raise the limit on file sizes (ulimit -f)";
    case EACCES:
    case EPERM:
    case EROFS:
      return "choose a folder that you may write to";
    case ENOENT:
      return "make the folder first";
    default:
      return "check the disk and the path";
  }
}

}  // namespace

int write_all(int fd, std::string_view bytes) {
  // Linux moves at most 2 GiB less a page in one call.
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), std::min(bytes.size(), kMostAtOnce));
    if (n < 0 && errno != EINTR) return errno;
    if (n == 0) return EIO;
    if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

int sync_folder_of(const std::string& path) {
  const UniqueFd fd(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_valid()) return errno;
  // Some network file systems do not know fsync of a folder; their renames are durable or not.
  return ::fsync(fd.get()) == 0 || errno == EINVAL ? 0 : errno;
}

Error write_error(const std::string& path, int errno_value, std::uint64_t num_bytes_needed) {
  std::string room = fmt::format("{} bytes needed", num_bytes_needed);
  if (const auto free = free_bytes(folder_of(path))) room += fmt::format(", {} free", *free);
  return {fmt::format("cannot write {}: {} ({}); {}", path, std::strerror(errno_value), room,
                      remedy(errno_value))};
}

}  // namespace hvd
