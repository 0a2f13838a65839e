// The address of a unix socket that has a path. Pure.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string_view>

namespace hvd {

// A path that is too long is cut: who takes one from outside looks at its size first.
[[nodiscard]] inline sockaddr_un unix_address(std::string_view path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

}  // namespace hvd
