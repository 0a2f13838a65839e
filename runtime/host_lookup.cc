#include "runtime/host_lookup.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

namespace hvd {

Result<AddressInfo> look_up_host(const std::string& host, int port, int flags) {
  addrinfo hints{};
  hints.ai_flags = flags;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string service = fmt::format_int(port).str();
  const int error = getaddrinfo(host.c_str(), service.c_str(), &hints, &found);
  if (error == 0) return AddressInfo(found, freeaddrinfo);
  Error refused;
  refused.message = fmt::format("host '{}' cannot be found: {}", host,
                                error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error));
  const bool is_unknown = error == EAI_NONAME || error == EAI_NODATA || error == EAI_FAIL;
  if (is_unknown) refused.code = ExitCode::kUsage;
  refused.may_retry = error == EAI_AGAIN;
  return tl::unexpected(std::move(refused));
}

}  // namespace hvd
