// What libssh's own reading of ssh_config does not tell: every identity file, certificates and the
// agent's socket that the files name for one host.
//
// Host blocks and `Match all`, `Match host`, `Match originalhost` are judged; other Match blocks
// are passed over. Include is followed. Reads files; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hvd {

struct SshConfigExtras {
  std::vector<std::string> identity_files;  // in order; `~` and %-tokens not yet replaced
  std::string identity_agent;               // empty: SSH_AUTH_SOCK
};

[[nodiscard]] SshConfigExtras scan_ssh_config(const std::vector<std::string>& files,
                                              std::string_view host);

// Whether a list of patterns as in a Host line ("node* !node3") is met.
[[nodiscard]] bool matches_host_patterns(std::string_view patterns, std::string_view host);

}  // namespace hvd
