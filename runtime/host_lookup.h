// A host's name or address as the system's list of socket addresses.
#pragma once

#include <netdb.h>

#include <memory>
#include <string>

#include "base/status.h"

namespace hvd {

using AddressInfo = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// One address or more. An error names the host; its code is kUsage where there is no such host,
// may_retry where the names could not be asked just now. Blocks as long as the system's resolver.
[[nodiscard]] Result<AddressInfo> look_up_host(const std::string& host, int port, int flags = 0);

}  // namespace hvd
