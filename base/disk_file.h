// Files on disk: reads and writes at a position that are whole or an error, and files without a
// name, of which nothing is left however the process ends. No state; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace hvd {

// 0, or errno with a part of it written.
[[nodiscard]] int write_at(int fd, std::string_view data, std::uint64_t offset);

// 0, or errno; EIO if the file ends before `size` bytes.
[[nodiscard]] int read_at(int fd, char* data, std::size_t size, std::uint64_t offset);

// The file with this text, on disk, or as it was: 0 or errno. Never through a link.
[[nodiscard]] int replace_file(const std::string& path, std::string_view text, unsigned mode);

// A new file for reading and writing on the file system of `folder`; invalid, with errno, if none
// can be made.
[[nodiscard]] UniqueFd open_unnamed(const std::string& folder);

}  // namespace hvd
