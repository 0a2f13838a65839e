#include "runtime/tcp_socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "runtime/descriptor_limits.h"
#include "runtime/host_lookup.h"

namespace hvd {
namespace {

// For each direction, of two processes on one machine (the kernel doubles it). Measured: larger
// ones cost a tenth more CPU time, because the bytes leave the caches; smaller ones more switches.
constexpr int kLocalBufferBytes = 192 * 1024;
constexpr int kBacklog = 4096;

Result<AddressInfo> numeric(const TcpAddress& address) {
  auto found = look_up_host(address.host, address.port, AI_NUMERICHOST | AI_PASSIVE);
  if (found) return found;
  return make_error("'{}' is no numeric address", address.host);
}

Result<UniqueFd> make_socket(int family) {
  UniqueFd made(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made.is_valid()) {
    return make_error("cannot make a socket: {}", describe_descriptor_error(errno));
  }
  const int on = 1;
  setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // accepted ones inherit it
  return made;
}

// All zero where the socket has none.
using GetName = int (*)(int, sockaddr*, socklen_t*);
sockaddr_storage name_of(int socket, GetName get_name) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (get_name(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return address;
}

std::uint16_t port_of(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

struct LocalAddress {
  sockaddr_un address{};
  socklen_t size = 0;
};

LocalAddress local_address(const std::string& name) {
  LocalAddress made;
  made.address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof made.address.sun_path - 1);
  memcpy(made.address.sun_path + 1, name.data(), length);
  made.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return made;
}

UniqueFd local_socket() {
  return UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

std::string_view host_bytes(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET6) {
    const auto& host = reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr;
    return {reinterpret_cast<const char*>(&host), sizeof host};
  }
  const auto& host = reinterpret_cast<const sockaddr_in*>(&address)->sin_addr;
  return {reinterpret_cast<const char*>(&host), sizeof host};
}

}  // namespace

Result<TcpListener> listen_on(const std::string& host) {
  const auto info = numeric({host, 0});
  if (!info) return tl::unexpected(info.error());
  auto made = make_socket((*info)->ai_family);
  if (!made) return tl::unexpected(made.error());
  if (bind(made->get(), (*info)->ai_addr, (*info)->ai_addrlen) != 0 ||
      listen(made->get(), kBacklog) != 0) {
    return make_error("cannot listen on {}: {}", host, strerror(errno));
  }
  const std::uint16_t port = port_of(name_of(made->get(), getsockname));
  return TcpListener{std::move(*made), port};
}

Result<UniqueFd> start_dial(const TcpAddress& address) {
  const auto info = numeric(address);
  if (!info) return tl::unexpected(info.error());
  auto made = make_socket((*info)->ai_family);
  if (!made) return made;
  if (connect(made->get(), (*info)->ai_addr, (*info)->ai_addrlen) != 0 && errno != EINPROGRESS) {
    return make_error("cannot connect to {} port {}: {}", address.host, address.port,
                      strerror(errno));
  }
  return made;
}

Result<UniqueFd> listen_on_local(const std::string& name) {
  UniqueFd made = local_socket();
  const LocalAddress at = local_address(name);
  if (!made.is_valid() ||
      bind(made.get(), reinterpret_cast<const sockaddr*>(&at.address), at.size) != 0 ||
      listen(made.get(), kBacklog) != 0) {
    return make_error("cannot listen on a unix socket: {}", describe_descriptor_error(errno));
  }
  return made;
}

UniqueFd dial_local(const std::string& name) {
  UniqueFd made = local_socket();
  const LocalAddress at = local_address(name);
  if (made.is_valid() &&
      connect(made.get(), reinterpret_cast<const sockaddr*>(&at.address), at.size) != 0) {
    made.reset();
  }
  return made;
}

int dial_error(int socket) {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

UniqueFd accept_one(int listener) {
  return UniqueFd(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

void prepare_for_bulk(int socket) {
  const sockaddr_storage here = name_of(socket, getsockname);
  const sockaddr_storage there = name_of(socket, getpeername);
  const bool is_on_one_machine = here.ss_family == AF_UNIX || host_bytes(here) == host_bytes(there);
  if (!is_on_one_machine) return;
  setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kLocalBufferBytes, sizeof kLocalBufferBytes);
  setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &kLocalBufferBytes, sizeof kLocalBufferBytes);
}

}  // namespace hvd
