// Starts `hvd-agent reap`, or what starts it, as a child with a launcher's connection as its
// standard input and output: it may have to kill, and to wait, what the process that serves other
// jobs must not.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"

namespace hvd {

struct ReapProcess {
  pid_t pid = -1;
  UniqueFd pidfd;  // readable once it has ended
};

// `command` begins with an absolute path; `stream` is the connection, which becomes a blocking one.
[[nodiscard]] Result<ReapProcess> start_reap(const std::vector<std::string>& command, int stream);

}  // namespace hvd
