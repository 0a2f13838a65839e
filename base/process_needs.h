// What a process of ours cannot begin without: gRPC and Asio abort or hang where the system refuses
// them threads or descriptors, so that is found out before.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace hvd {

// As many threads and descriptors as a small job needs; an error names the limit and its remedy.
[[nodiscard]] Result<void> check_process_needs();

// This process may open as many files as the system lets it. Returns what it could before: programs
// that it starts may need that.
std::uint64_t lift_descriptor_limit();

}  // namespace hvd
