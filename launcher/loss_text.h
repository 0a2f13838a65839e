// How it is told that a node's connection has ended. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"

namespace hvd {

// Whether a node that was last heard `silence` ago is more than a little late.
[[nodiscard]] bool is_silent_for(Nanos silence, Nanos heartbeat);

// What a node is lost for when its connection ended: `why`, as the connection tells it. After a
// silence that is what counts, because then the kernel has only given up waiting.
[[nodiscard]] std::string connection_end_text(std::string_view why, Nanos silence, Nanos heartbeat);

}  // namespace hvd
