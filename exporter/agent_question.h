// One question to the agent of this node, at its unix socket: a control line goes there, an answer
// line comes back, and the connection ends. Blocking, on the caller's thread, and never longer than
// until the deadline.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace hvd {

// What follows "ok" in the answer to "ctl VERB". At most 1 MiB is read of it. An error says why
// there is none: nobody at the socket, the deadline, what the agent refused.
[[nodiscard]] Result<std::string> ask_agent(const std::string& socket, std::string_view verb,
                                            SteadyTime deadline);

}  // namespace hvd
