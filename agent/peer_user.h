// Who is at the other end of a unix socket, as the kernel noted it when the connection was made.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <optional>

namespace hvd {

struct PeerUser {
  pid_t pid = 0;
  uid_t uid = 0;
};

// Nothing where the socket is none of that kind.
[[nodiscard]] inline std::optional<PeerUser> peer_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return PeerUser{peer.pid, peer.uid};
}

// An agent serves its own user and root, who could do all of it anyway. Pure.
[[nodiscard]] inline bool is_served(uid_t peer, uid_t own) { return peer == own || peer == 0; }

}  // namespace hvd
