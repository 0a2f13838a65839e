#include "runtime/json_array_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/disk_file.h"

namespace hvd {
Result<JsonArrayFile> JsonArrayFile::create(const std::string& path, std::string_view elements) {
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return make_error("{} is {}; name a file", path,
                      S_ISDIR(info.st_mode) ? "a folder" : "no regular file");
  }
  const std::string unready = path + ".new";
  unlink(unready.c_str());
  UniqueFd fd(open(unready.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.is_valid()) return make_error("{} cannot be made: {}", path, strerror(errno));
  JsonArrayFile file(path, std::move(fd));
  const std::string text = fmt::format("[\n{}{}", elements, kClosing);
  int error = write_at(file.file_.get(), text, 0);
  if (error == 0 && rename(unready.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    unlink(unready.c_str());
    return make_error("{} cannot be written: {}", path, strerror(error));
  }
  file.end_ = text.size() - kClosing.size();
  return file;
}

Result<void> JsonArrayFile::append(std::string_view elements) {
  const std::string text = fmt::format("{}{}{}", kSeparator, elements, kClosing);
  if (const int error = write_at(file_.get(), text, end_); error != 0) {
    close_again();
    return make_error("{} cannot be written: {}", path_, strerror(error));
  }
  end_ += text.size() - kClosing.size();
  return {};
}

// These bytes have their place on the disk already.
void JsonArrayFile::close_again() {
  [[maybe_unused]] const int unwritten = write_at(file_.get(), kClosing, end_);
  [[maybe_unused]] const int uncut = ftruncate(file_.get(), static_cast<off_t>(num_bytes()));
}

}  // namespace hvd
