// TCP sockets of the collectives: numeric addresses, listening, dialling, options. All sockets are
// non-blocking and close-on-exec. Thin; no state.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "base/unique_fd.h"

namespace hvd {

// A numeric IPv4 or IPv6 address and a port.
struct TcpAddress {
  std::string host;
  std::uint16_t port = 0;
};

struct TcpListener {
  UniqueFd socket;
  std::uint16_t port = 0;  // chosen by the kernel
};

[[nodiscard]] Result<TcpListener> listen_on(const std::string& host);

// Connecting goes on after the return; the socket becomes writable when it is over.
[[nodiscard]] Result<UniqueFd> start_dial(const TcpAddress& address);

// 0 or the errno of a dial that is over.
[[nodiscard]] int dial_error(int socket);

// Between processes of one machine and network namespace a unix socket costs less than TCP's
// loopback. `name` is in the abstract namespace: no file.
[[nodiscard]] Result<UniqueFd> listen_on_local(const std::string& name);
// Connected, or invalid where nobody listens there: another machine.
[[nodiscard]] UniqueFd dial_local(const std::string& name);

// Invalid when nobody waits (errno EAGAIN) or accepting failed.
[[nodiscard]] UniqueFd accept_one(int listener);

// A connected socket that is to carry bulk: small buffers where both ends are on one machine, so
// that the bytes stay in its caches; else the kernel fits them to the network.
void prepare_for_bulk(int socket);

}  // namespace hvd
