// A file that holds one JSON array and is valid JSON whenever somebody looks, also after the
// writing process was killed: a write is one pwrite that starts where the array was closed and ends
// with its new end; the file appears under its name with its first elements in it.
//
// One race is accepted: a SIGKILL that arrives while the kernel copies a write across a page
// boundary (less than a microsecond each) tears it there. No order of writes avoids that, because
// the bytes that continue an array and those that close it then lie in two pages. A reader that
// takes whole lines loses nothing but the torn one. One element is one line.
//
// Lifecycle: create() once, append() until an error, which is final: the file is then valid and as
// long as before. Thread: one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/unique_fd.h"

namespace hvd {

class JsonArrayFile {
 public:
  // Replaces a file of that name, but never a folder, a device or a link. `elements`: one or more
  // JSON values, separated by kSeparator; so for append().
  [[nodiscard]] static Result<JsonArrayFile> create(const std::string& path,
                                                    std::string_view elements);
  [[nodiscard]] Result<void> append(std::string_view elements);

  [[nodiscard]] std::uint64_t num_bytes() const { return end_ + kClosing.size(); }

  static constexpr std::string_view kSeparator = ",\n";

 private:
  static constexpr std::string_view kClosing = "\n]";

  JsonArrayFile(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}
  void close_again();

  std::string path_;
  UniqueFd file_;
  std::uint64_t end_ = 0;  // where the closing stands
};

}  // namespace hvd
