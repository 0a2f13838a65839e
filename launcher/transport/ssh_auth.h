// Authenticates a session by keys: the user's ssh-agent, then identity files. Never asks anybody
// for anything. Blocks; for pool threads.
#pragma once

#include <string>
#include <vector>

#include "launcher/transport/ssh_job.h"
#include "launcher/transport/ssh_keys.h"
#include "launcher/transport/ssh_session.h"

namespace hvd {

struct SshIdentities {
  std::vector<std::string> named_files;    // from -i and ssh_config
  std::vector<std::string> default_files;  // tried last, missing ones are no news
  std::string agent_socket;                // empty: none
};

[[nodiscard]] Result<void> authenticate(SshJob& job, SshSession& session, SshKeys& keys,
                                        const SshIdentities& identities);

}  // namespace hvd
