// A connected pair of non-blocking stream sockets, close-on-exec. Thread: any.
#pragma once

#include <errno.h>
#include <sys/socket.h>

#include <cstring>
#include <utility>

#include "base/status.h"
#include "base/unique_fd.h"

namespace hvd {

[[nodiscard]] inline Result<std::pair<UniqueFd, UniqueFd>> make_stream_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return make_error("cannot make a socket pair: {}", std::strerror(errno));
  }
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

}  // namespace hvd
