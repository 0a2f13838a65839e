// The numeric address by which other ranks reach this machine, where no launcher told it. Nothing
// is sent; a name is resolved. Threads: any.
#pragma once

#include <string>

#include "base/status.h"

namespace hvd {

// The address that this machine has on its way to `host` (a name or an address).
[[nodiscard]] Result<std::string> own_address_towards(const std::string& host, int port);

// The one on the way to everywhere else; an error where there is no such way.
[[nodiscard]] Result<std::string> own_address_of_default_route();

}  // namespace hvd
