#include "training/formats/atomic_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>

#include "training/formats/disk_write.h"

namespace hvd {
namespace {

constexpr std::string_view kMark = ".partial-";

// Asks for room; the file's length stays what was written. errno, or 0 also where the file system
// cannot promise room.
int reserve(int fd, std::uint64_t num_bytes) {
  if (num_bytes == 0) return 0;
  if (::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(num_bytes)) == 0) return 0;
  const bool is_full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
  return is_full ? errno : 0;
}

}  // namespace

std::string AtomicFile::temporary_path(const std::string& path) {
  const std::filesystem::path whole(path);
  const std::string name = fmt::format(".{}{}{}", whole.filename().string(), kMark, ::getpid());
  return (whole.parent_path() / name).string();
}

bool AtomicFile::is_temporary_name(std::string_view file_name, std::string_view name) {
  const std::string prefix = fmt::format(".{}{}", name, kMark);
  if (!file_name.starts_with(prefix)) return false;
  file_name.remove_prefix(prefix.size());
  return !file_name.empty() &&
         std::ranges::all_of(file_name, [](unsigned char c) { return std::isdigit(c) != 0; });
}

Result<AtomicFile> AtomicFile::create(const std::string& path, std::uint64_t num_bytes) {
  UniqueFd fd(::open(temporary_path(path).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd.is_valid()) return tl::unexpected(write_error(path, errno, num_bytes));
  AtomicFile file(path, num_bytes, std::move(fd));
  if (const int error = reserve(file.fd_.get(), num_bytes); error != 0) return file.fail(error);
  return file;
}

Result<void> AtomicFile::write(std::string_view bytes) {
  if (!fd_.is_valid()) return fail(EBADF);
  num_written_ += bytes.size();
  if (const int error = write_all(fd_.get(), bytes); error != 0) return fail(error);
  return {};
}

Result<void> AtomicFile::commit() {
  if (!fd_.is_valid()) return fail(EBADF);
  if (::fsync(fd_.get()) != 0) return fail(errno);
  if (::rename(temporary_path(path_).c_str(), path_.c_str()) != 0) return fail(errno);
  fd_.reset();
  if (const int error = sync_folder_of(path_); error != 0) return fail(error);
  return {};
}

void AtomicFile::abandon() {
  if (!fd_.is_valid()) return;
  fd_.reset();
  ::unlink(temporary_path(path_).c_str());
}

tl::unexpected<Error> AtomicFile::fail(int errno_value) {
  abandon();
  return tl::unexpected(write_error(path_, errno_value, std::max(num_bytes_, num_written_)));
}

}  // namespace hvd
