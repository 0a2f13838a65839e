// The words of --rsh made into the command for one node. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "launcher/transport/transport.h"

namespace hvd {

// {host} {user} {port} are replaced inside words; the word {command} becomes the node's command,
// which is appended when no such word stands there. Without a user the launcher's own name, without
// a port
// 22. A host that a program would take for an option is an error.
[[nodiscard]] Result<std::vector<std::string>> expand_rsh(const std::vector<std::string>& rsh,
                                                          const Target& target,
                                                          const std::vector<std::string>& command);

}  // namespace hvd
