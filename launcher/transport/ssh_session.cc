#include "launcher/transport/ssh_session.h"

#include <signal.h>
#include <sys/wait.h>

#include <array>

namespace hvd {

SshSession::~SshSession() {
  ssh_set_blocking(session_, 0);
  if (channel_) ssh_channel_free(channel_);
  ssh_free(session_);
  if (proxy_.pid < 0) return;
  ::kill(-proxy_.pid, SIGKILL);
  ::waitpid(proxy_.pid, nullptr, 0);
}

std::string SshSession::option(ssh_options_e name) const {
  char* value = nullptr;
  if (ssh_options_get(session_, name, &value) != SSH_OK || !value) return "";
  const SshText owner(value);
  return value;
}

std::string SshSession::read_proxy_errors() {
  std::array<char, 1024> buffer;
  if (!proxy_.error_pipe.is_valid()) return "";
  const ssize_t size = ::read(proxy_.error_pipe.get(), buffer.data(), buffer.size());
  std::string text(buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  return text;
}

Result<void> SshSession::execute(const std::string& command) {
  channel_ = ssh_channel_new(session_);
  if (!channel_ || ssh_channel_open_session(channel_) != SSH_OK) {
    return make_error("sshd opened no session: {}", error_text());
  }
  if (ssh_channel_request_exec(channel_, command.c_str()) != SSH_OK) {
    return make_error("sshd refused to run a command: {}", error_text());
  }
  return {};
}

}  // namespace hvd
