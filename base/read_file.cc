#include "base/read_file.h"

#include <fcntl.h>

#include <array>

#include "base/unique_fd.h"

namespace hvd {

std::string read_small_file(const std::string& path) {
  constexpr std::size_t kMost = 1u << 20;
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string text;
  std::array<char, 4096> buffer;
  while (file.is_valid() && text.size() < kMost) {
    const ssize_t n = read(file.get(), buffer.data(), buffer.size());
    if (n <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return text;
}

std::string read_first_line(const std::string& path) {
  std::string text = read_small_file(path);
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

}  // namespace hvd
