// What this machine calls itself.
#pragma once

#include <unistd.h>

#include <array>
#include <string>

namespace hvd {

// "?" where the system does not tell.
[[nodiscard]] inline std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "?";
  return name.data();
}

}  // namespace hvd
