// The lock by which a folder shows that its job still has somebody who will remove it: agent and
// shim share it as long as they live, in whatever pid namespace. Numbers of processes would prove
// nothing there.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace hvd {

// The folder, locked as flock(2) has it (LOCK_SH, LOCK_EX), until it is closed; not valid where
// somebody else's lock forbids that. Follows no link.
[[nodiscard]] UniqueFd lock_folder(const std::string& path, int how);

// Unchanged for so long. Younger ones may be about to be locked.
[[nodiscard]] bool is_older(int folder, Nanos age);

}  // namespace hvd
