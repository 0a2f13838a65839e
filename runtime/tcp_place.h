// What the system says of a job's tcp://HOST:PORT before gRPC, whose own words help nobody, is
// asked: a place that cannot be one is refused at once. Errors are the user's (ExitCode::kUsage),
// one sentence each. Threads: any; a call makes a socket or two and closes them.
#pragma once

#include <string>

#include "base/status.h"

namespace hvd {

// Whether the host's name is known here; a resolver that does not answer is no error yet.
[[nodiscard]] Result<void> check_tcp_host(const std::string& host, int port);

// Whether this process can serve a meeting at the port, on loopback (host: a loopback name) or on
// all addresses.
[[nodiscard]] Result<void> check_tcp_port(const std::string& host, int port);

// Whether one of the host's addresses is this machine's.
[[nodiscard]] bool is_host_here(const std::string& host);

// Of rank 0: that the host is neither this machine nor a way to it.
[[nodiscard]] tl::unexpected<Error> foreign_host(const std::string& host, int port);

// HVDRUN_ADDRESS: numeric, and one of this machine's. Empty: nothing was set.
[[nodiscard]] Result<void> check_own_address(const std::string& address);

// Why nobody answers at the port now: "nobody listens at head:1234 (rank 0 would): Connection
// refused"; tries to connect for a fifth of a second.
[[nodiscard]] std::string describe_silence(const std::string& host, int port);

[[nodiscard]] bool is_loopback_host(const std::string& host);

}  // namespace hvd
