// One log-in from configuration to a running command: ssh_config, connection or proxy, key
// exchange, host key, authentication without any prompt, channel. Blocks; for pool threads.
#pragma once

#include <memory>
#include <string>

#include "launcher/transport/ssh_job.h"
#include "launcher/transport/ssh_keys.h"
#include "launcher/transport/ssh_session.h"

namespace hvd {

struct SshLoginConfig {
  std::string config_file;
  std::string identity_file;
  std::uint16_t port = 0;
  bool accept_new_host_keys = false;
  std::chrono::nanoseconds lease{};
};

// Connections that break before the keys are exchanged are tried again, four times with growing
// pauses. Errors do not name the host. `keys` is shared by all log-ins.
[[nodiscard]] Result<std::unique_ptr<SshSession>> log_in(SshJob& job, const SshLoginConfig& config,
                                                         SshKeys& keys, const std::string& command);

}  // namespace hvd
