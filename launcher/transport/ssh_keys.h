// Private keys in files, each read once in a process, and what the user's ssh-agent holds. Any
// thread.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "launcher/transport/ssh_session.h"

namespace hvd {

enum class KeyState { kUsable, kMissing, kEncrypted, kBroken };

class SshKeys {
 public:
  // A copy for the calling thread, with the certificate of PATH-cert.pub if there is one; null
  // unless the state is kUsable.
  [[nodiscard]] std::pair<KeyState, SshKey> read(const std::string& path);

 private:
  struct Entry {
    KeyState state = KeyState::kMissing;
    SshKey key;
    SshKey certificate;
  };
  static Entry load(const std::string& path);

  std::mutex mutex_;
  std::map<std::string, Entry> entries_;  // guarded by mutex_
};

// A connection to an agent that answered within two seconds, and the number of its keys. A stopped
// agent accepts connections but never answers: libssh would wait for ever.
struct SshAgent {
  UniqueFd socket;
  std::size_t num_keys = 0;
};
[[nodiscard]] std::optional<SshAgent> connect_ssh_agent(const std::string& socket_path);

}  // namespace hvd
