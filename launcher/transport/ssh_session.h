// Owners of libssh's objects and of the program behind ProxyCommand. A session with its channel
// belongs to one thread at a time and may move between threads.
#pragma once

#include <libssh/libssh.h>

#include <memory>
#include <string>

#include "launcher/transport/child_process.h"

namespace hvd {

struct FreeSshKey {
  void operator()(ssh_key key) const { ssh_key_free(key); }
};
using SshKey = std::unique_ptr<ssh_key_struct, FreeSshKey>;

// A string that libssh allocated.
struct FreeSshText {
  void operator()(char* text) const { ssh_string_free_char(text); }
};
using SshText = std::unique_ptr<char, FreeSshText>;

class SshSession {
 public:
  SshSession() : session_(ssh_new()) {}
  SshSession(const SshSession&) = delete;
  SshSession& operator=(const SshSession&) = delete;
  ~SshSession();  // closes the connection without a word and does not wait for the other side

  [[nodiscard]] ssh_session get() const { return session_; }
  [[nodiscard]] ssh_channel channel() const { return channel_; }
  [[nodiscard]] std::string error_text() const { return ssh_get_error(session_); }
  // The value of an option as the configuration files left it; empty if there is none.
  [[nodiscard]] std::string option(ssh_options_e name) const;

  void set_proxy(ChildProcess proxy) { proxy_ = std::move(proxy); }
  // What the proxy program said so far on its standard error.
  [[nodiscard]] std::string read_proxy_errors();

  // Opens the one channel and starts the command on it. Blocks.
  [[nodiscard]] Result<void> execute(const std::string& command);

 private:
  ssh_session session_;
  ssh_channel channel_ = nullptr;
  ChildProcess proxy_;  // pid -1: none
};

}  // namespace hvd
