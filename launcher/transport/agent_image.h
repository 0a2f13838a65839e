// Reads what identifies an agent program. Any thread; keeps nothing open.
#pragma once

#include <string>

#include "base/status.h"
#include "launcher/transport/transport.h"

namespace hvd {

// Identity, size and machine type of the program at `path`. Reads the ELF header and the note that
// holds the build id, not the content; a program without a build id is hashed.
[[nodiscard]] Result<AgentImage> read_agent_image(const std::string& path);

}  // namespace hvd
