// Starts the job's hvd-shim: this same program with the word "shim", a socket as its descriptor 3
// and no other descriptor of ours. Called before any thread exists and before gRPC, so that the
// shim inherits the signal dispositions that the agent itself was given.
#pragma once

#include <sys/types.h>

#include "agent/arguments.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace hvd {

struct ShimProcess {
  pid_t pid = -1;
  UniqueFd socket;  // ToShim goes in, FromShim comes out
  UniqueFd pidfd;   // readable once it has ended; not valid on kernels before 5.4
};

// The job's id and the node's index stand on its command line, too, if they are known.
[[nodiscard]] Result<ShimProcess> start_shim(const AgentArguments& arguments);

}  // namespace hvd
