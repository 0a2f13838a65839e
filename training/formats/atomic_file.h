// A file that appears under its name complete and durable, or not at all: written under a temporary
// name in the same folder, fsync, renamed, fsync of the folder.
//
// Lifecycle: create(), write() any number of times, commit(). Destroyed earlier, or after an error,
// it removes the temporary file, and what stood under the name before is untouched. A killed
// process leaves the temporary file behind; is_temporary_name() tells it to whoever sweeps. Thread:
// one at a time; one writer of a path in a process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/unique_fd.h"

namespace hvd {

class AtomicFile {
 public:
  // `num_bytes`: how long the file will be, 0 if not known. Room for it is asked for at once, so
  // that a disk that is too full is told before anything is written; errors name that size.
  [[nodiscard]] static Result<AtomicFile> create(const std::string& path, std::uint64_t num_bytes);

  AtomicFile(AtomicFile&& other) noexcept = default;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile() { abandon(); }

  [[nodiscard]] Result<void> write(std::string_view bytes);
  [[nodiscard]] Result<void> commit();

  // ".NAME.partial-PID" in the same folder.
  [[nodiscard]] static std::string temporary_path(const std::string& path);
  // Whether a file name (no folder) is the temporary one of `name`, of any process. Pure.
  [[nodiscard]] static bool is_temporary_name(std::string_view file_name, std::string_view name);

 private:
  AtomicFile(std::string path, std::uint64_t num_bytes, UniqueFd fd)
      : path_(std::move(path)), num_bytes_(num_bytes), fd_(std::move(fd)) {}

  void abandon();
  // Removes the temporary file first, so that the free bytes told are those without it.
  [[nodiscard]] tl::unexpected<Error> fail(int errno_value);

  std::string path_;
  std::uint64_t num_bytes_;
  std::uint64_t num_written_ = 0;
  UniqueFd fd_;  // valid while the temporary file is ours to remove
};

}  // namespace hvd
