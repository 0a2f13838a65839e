// What a process of ours cannot begin without: gRPC and Asio abort or hang where the system refuses
// them threads or descriptors, so that is found out before.
#pragma once

#include "base/status.h"

namespace hvd {

// As many threads and descriptors as a small job needs; an error names the limit and its remedy.
[[nodiscard]] Result<void> check_process_needs();

}  // namespace hvd
