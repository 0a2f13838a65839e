// What the user wants of restarts: --max-restarts and --spare.
#pragma once

#include <cstdint>
#include <vector>

#include "launcher/hostlist.h"

namespace hvd {

struct RestartRequest {
  std::uint32_t most = 0;          // restarts; 0: off
  std::vector<HostSpec> spares{};  // in the order of their use
};

}  // namespace hvd
