// Reaches a TCP port: name to addresses, then each address in turn, again and again while one of
// them is silent and the job's deadline has not come. Blocks; for pool threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "base/unique_fd.h"
#include "launcher/transport/ssh_job.h"

namespace hvd {

// A connected socket: close-on-exec, non-blocking, no delay, given up by the kernel after `lease`
// without a sign of the other end. Refused, unknown name and no route are final.
[[nodiscard]] Result<UniqueFd> dial(SshJob& job, const std::string& host, std::uint16_t port,
                                    std::chrono::nanoseconds lease);

}  // namespace hvd
