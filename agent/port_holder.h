// Who listens on a TCP port of this machine: for a rank 0 that could not, although the port was
// reserved for its job. The table of sockets is read first, so it costs little where nobody does.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

struct PortListener {
  std::string socket;  // inode number
  uid_t user = 0;
};

// Of a /proc/net/tcp or tcp6. Pure.
[[nodiscard]] std::vector<PortListener> parse_port_listeners(std::string_view table,
                                                             std::uint16_t port);

// "process 4711 (uid 1000): python3 serve.py", "a process of uid 0 that cannot be seen from here";
// nothing if nobody listens or only rank 0 of this job and what it has left.
[[nodiscard]] std::string find_port_holder(std::uint16_t port, std::string_view job_id,
                                           std::uint32_t node);

}  // namespace hvd
