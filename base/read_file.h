// Small files of /proc and /sys as text.
#pragma once

#include <string>

namespace hvd {

// The contents, at most 1 MiB; empty if it cannot be read.
[[nodiscard]] std::string read_small_file(const std::string& path);

// Up to the first newline.
[[nodiscard]] std::string read_first_line(const std::string& path);

}  // namespace hvd
