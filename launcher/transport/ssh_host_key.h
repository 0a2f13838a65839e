// Judges the key that a server showed against the known_hosts files of the session's configuration.
// A changed, revoked or differently typed key is refused always. Blocks on files; for pool threads.
#pragma once

#include "launcher/transport/ssh_job.h"
#include "launcher/transport/ssh_session.h"

namespace hvd {

// `accept_new`: an unknown key is appended to the user's file, once, under a lock.
[[nodiscard]] Result<void> check_host_key(SshJob& job, SshSession& session, bool accept_new);

}  // namespace hvd
