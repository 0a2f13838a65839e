#include "runtime/tcp_place.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/host_name.h"
#include "base/unique_fd.h"
#include "runtime/descriptor_limits.h"
#include "runtime/host_lookup.h"
#include "runtime/tcp_socket.h"

namespace hvd {
namespace {

constexpr int kLookMs = 200;

UniqueFd stream_socket(int family) {
  return UniqueFd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// 0 or the errno of listening at the address.
int try_to_listen(const addrinfo& at) {
  const UniqueFd probe = stream_socket(at.ai_family);
  if (!probe.is_valid()) return errno;
  const int on = 1;
  const int off = 0;
  // As gRPC does: a port whose last connections still end counts as free.
  setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (at.ai_family == AF_INET6) {
    setsockopt(probe.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  const bool is_listening =
      bind(probe.get(), at.ai_addr, at.ai_addrlen) == 0 && listen(probe.get(), 1) == 0;
  return is_listening ? 0 : errno;
}

// Also an address that the machine has only now and then (a container's) can be bound while it has
// it, and at no other time.
bool is_address_here(const addrinfo& at) {
  const UniqueFd probe = stream_socket(at.ai_family);
  return probe.is_valid() && bind(probe.get(), at.ai_addr, at.ai_addrlen) == 0;
}

// 0 or the errno of connecting.
int try_to_connect(const addrinfo& at) {
  const UniqueFd probe = stream_socket(at.ai_family);
  if (!probe.is_valid()) return errno;
  if (connect(probe.get(), at.ai_addr, at.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd ready{probe.get(), POLLOUT, 0};
  return poll(&ready, 1, kLookMs) > 0 ? dial_error(probe.get()) : ETIMEDOUT;
}

}  // namespace

bool is_loopback_host(const std::string& host) {
  return host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
}

Result<void> check_tcp_host(const std::string& host, int port) {
  const auto found = look_up_host(host, port);
  if (found || found.error().may_retry) return {};
  return make_error(ExitCode::kUsage,
                    "the ranks are to meet at tcp://{}:{}, but on {} {}: let HVDRUN_INIT (of "
                    "torchrun: MASTER_ADDR) name the machine of rank 0 as every node knows it",
                    host, port, host_name(), found.error().message);
}

Result<void> check_tcp_port(const std::string& host, int port) {
  const bool is_local = is_loopback_host(host);
  auto found = look_up_host(is_local ? host : "::", port, is_local ? 0 : AI_PASSIVE);
  if (!found) return {};  // a machine without IPv6, or without its own name: gRPC finds its way
  const int error = try_to_listen(**found);
  if (error == 0 || error == EAFNOSUPPORT || error == EADDRNOTAVAIL) return {};
  return make_error(ExitCode::kUsage,
                    "rank 0 cannot listen at port {} of {} for the rendezvous of the job: {}{}; "
                    "set HVDRUN_INIT=tcp://{}:PORT with a port that is free",
                    port, host_name(), describe_descriptor_error(error),
                    error == EADDRINUSE ? " by another program or job" : "", host);
}

bool is_host_here(const std::string& host) {
  const auto found = look_up_host(host, 0);
  if (!found) return false;
  for (const addrinfo* each = found->get(); each != nullptr; each = each->ai_next) {
    if (is_address_here(*each)) return true;
  }
  return false;
}

tl::unexpected<Error> foreign_host(const std::string& host, int port) {
  return make_error(ExitCode::kUsage,
                    "rank 0 runs on {} and serves the meeting of the ranks, but tcp://{}:{} does "
                    "not lead to it: let HVDRUN_INIT (of torchrun: MASTER_ADDR) name the machine "
                    "of rank 0, or start rank 0 on {}",
                    host_name(), host, port, host);
}

Result<void> check_own_address(const std::string& address) {
  if (address.empty()) return {};
  const auto found = look_up_host(address, 0, AI_NUMERICHOST);
  if (!found) {
    return make_error(ExitCode::kUsage,
                      "HVDRUN_ADDRESS={} is no numeric address: give the one by which the other "
                      "nodes reach {}, or unset it",
                      address, host_name());
  }
  if (is_address_here(**found)) return {};
  return make_error(ExitCode::kUsage,
                    "HVDRUN_ADDRESS={} is no address of {}: each node needs its own (see ip "
                    "address there), or unset it",
                    address, host_name());
}

std::string describe_silence(const std::string& host, int port) {
  const auto found = look_up_host(host, port);
  int error = 0;
  if (found) {
    for (const addrinfo* each = found->get(); each != nullptr; each = each->ai_next) {
      error = try_to_connect(*each);
      if (error == 0) {
        return fmt::format("whoever listens at {}:{} is not rank 0 of a job of hvdrun's runtime",
                           host, port);
      }
    }
  }
  return fmt::format("nobody listens at {}:{} (rank 0 would): {}", host, port,
                     found ? strerror(error) : found.error().message);
}

}  // namespace hvd
