// Where the program of this process lies.
#pragma once

#include <unistd.h>

#include <array>
#include <climits>
#include <string>

namespace hvd {

// Absolute; empty if /proc does not tell.
[[nodiscard]] inline std::string own_program() {
  std::array<char, PATH_MAX> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : std::string();
}

// Its folder.
[[nodiscard]] inline std::string own_program_folder() {
  const std::string path = own_program();
  return path.substr(0, path.rfind('/'));
}

}  // namespace hvd
