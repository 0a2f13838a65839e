#include "runtime/own_address.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

#include <array>

#include "base/unique_fd.h"
#include "runtime/host_lookup.h"

namespace hvd {
namespace {

// Of the documentation's networks: routed like any other address, nobody's.
constexpr const char* kElsewhereV4 = "192.0.2.1";
constexpr const char* kElsewhereV6 = "2001:db8::1";
constexpr int kAnyPort = 9;

std::string numeric_name(const sockaddr_storage& address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, text.data(), text.size(),
                  nullptr, 0, NI_NUMERICHOST) != 0) {
    return {};
  }
  return text.data();
}

// A datagram socket that is connected has chosen its way, and has sent nothing.
std::string source_address(const addrinfo& destination) {
  const UniqueFd probe(socket(destination.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe.is_valid() || connect(probe.get(), destination.ai_addr, destination.ai_addrlen) != 0) {
    return {};
  }
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) return {};
  return numeric_name(own, size);
}

}  // namespace

Result<std::string> own_address_towards(const std::string& host, int port) {
  const auto found = look_up_host(host, port);
  if (!found) return tl::unexpected(found.error());
  for (const addrinfo* each = found->get(); each != nullptr; each = each->ai_next) {
    std::string own = source_address(*each);
    if (!own.empty()) return own;
  }
  return make_error("there is no way to host '{}': {}", host, strerror(errno));
}

Result<std::string> own_address_of_default_route() {
  for (const char* elsewhere : {kElsewhereV4, kElsewhereV6}) {
    auto own = own_address_towards(elsewhere, kAnyPort);
    if (own) return own;
  }
  return make_error(
      "this machine has no route to other machines: set HVDRUN_ADDRESS to its address on the "
      "network of the job");
}

}  // namespace hvd
