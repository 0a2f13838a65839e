// A whole file, read-only, in the address space.
//
// Lifecycle: the bytes stay valid and in place until the object is destroyed; moving it does not
// move them. Nobody may shorten the file meanwhile: reading past its new end raises SIGBUS, as an
// I/O error of the disk does. Thread: const after open(), so any.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace hvd {

class MappedFile {
 public:
  // Never blocks on a pipe: only regular files are taken. An empty file is one of no bytes.
  [[nodiscard]] static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string_view bytes() const { return {data_, size_}; }

 private:
  MappedFile(std::string path, const char* data, std::size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}

  std::string path_;
  const char* data_ = nullptr;  // null for an empty file
  std::size_t size_ = 0;
};

}  // namespace hvd
