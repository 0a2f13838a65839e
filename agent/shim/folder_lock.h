// The lock by which a folder shows that its job still has somebody who will remove it: agent and
// shim share it as long as they live, in whatever pid namespace. Numbers of processes would prove
// nothing there.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace hvd {

// The folder, locked as flock(2) has it (LOCK_SH, LOCK_EX), until it is closed; not valid where
// somebody else's lock forbids that. Follows no link.
[[nodiscard]] UniqueFd lock_folder(const std::string& path, int how);

// Whoever holds it says so from time to time: after its death that is known of it.
void touch_folder(int folder);

// How long ago that was, or an entry was made or removed.
[[nodiscard]] std::optional<Nanos> since_touched(int folder);

// Younger ones may be about to be locked.
[[nodiscard]] bool is_older(int folder, Nanos age);

}  // namespace hvd
