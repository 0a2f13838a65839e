#include "launcher/transport/ssh_auth.h"

#include <fmt/ranges.h>

namespace hvd {
namespace {

// sshd's MaxAuthTries is 6: an agent with more keys would use it up before a named file's turn.
constexpr std::size_t kManyAgentKeys = 5;

class Authentication {
 public:
  Authentication(SshJob& job, SshSession& session, SshKeys& keys, const SshIdentities& identities)
      : job_(job), session_(session), keys_(keys), identities_(identities) {}

  Result<void> run() {
    if (take(ssh_userauth_none(session_.get(), nullptr))) return {};
    if (is_broken_) return broken();
    if (!(ssh_userauth_list(session_.get(), nullptr) & SSH_AUTH_METHOD_PUBLICKEY)) {
      return make_error(
          "sshd offers {} and no public keys, and hvdrun never asks for a password: {}", methods(),
          copy_hint());
    }
    auto agent = connect_ssh_agent(identities_.agent_socket);
    const bool are_files_first =
        agent && agent->num_keys > kManyAgentKeys && !identities_.named_files.empty();
    if (are_files_first && try_files(identities_.named_files, true)) return {};
    if (agent && !is_broken_ && try_agent(*agent)) return {};
    if (!are_files_first && !is_broken_ && try_files(identities_.named_files, true)) return {};
    if (!is_broken_ && try_files(identities_.default_files, false)) return {};
    return is_broken_ ? broken() : refused();
  }

 private:
  // Whether that was the last step.
  bool take(int result) {
    if (result == SSH_AUTH_PARTIAL) wants_more_ = true;
    if (result == SSH_AUTH_ERROR && !ssh_is_connected(session_.get())) is_broken_ = true;
    return result == SSH_AUTH_SUCCESS;
  }

  bool try_agent(SshAgent& agent) {
    if (agent.num_keys == 0) return false;
    tried_.push_back(fmt::format("{} of ssh-agent", agent.num_keys));
    const SshJob::Guard guard(job_, agent.socket.get());
    if (ssh_set_agent_socket(session_.get(), agent.socket.release()) != SSH_OK) return false;
    return take(ssh_userauth_agent(session_.get(), nullptr));
  }

  bool try_files(const std::vector<std::string>& files, bool are_named) {
    for (const std::string& path : files) {
      if (is_broken_ || job_.is_over()) return false;
      const auto [state, key] = keys_.read(path);
      if (state == KeyState::kEncrypted) encrypted_.push_back(path);
      if (state == KeyState::kMissing && are_named) missing_.push_back(path);
      if (state == KeyState::kBroken) missing_.push_back(path);
      if (state != KeyState::kUsable) continue;
      tried_.push_back(path);
      if (take(ssh_userauth_publickey(session_.get(), nullptr, key.get()))) return true;
    }
    return false;
  }

  [[nodiscard]] tl::unexpected<Error> broken() const {
    return make_error("sshd ended the log-in: {}", session_.error_text());
  }

  [[nodiscard]] tl::unexpected<Error> refused() const {
    if (wants_more_) {
      return make_error("sshd took a key but wants a second factor, and hvdrun never asks for one");
    }
    if (!encrypted_.empty()) {
      return make_error("key {} is encrypted and no agent holds it: ssh-add {}", encrypted_.front(),
                        encrypted_.front());
    }
    if (!missing_.empty()) {
      return make_error("cannot use key {}: it is missing or not a private key; sshd offers {}: {}",
                        missing_.front(), methods(), copy_hint());
    }
    if (tried_.empty()) {
      return make_error("there is no key to log in with, and sshd offers {}: {}", methods(),
                        copy_hint());
    }
    return make_error("sshd accepted no key (tried {}) and offers {}: {}", fmt::join(tried_, ", "),
                      methods(), copy_hint());
  }

  [[nodiscard]] std::string methods() const {
    const int list = ssh_userauth_list(session_.get(), nullptr);
    std::vector<std::string> names;
    if (list & SSH_AUTH_METHOD_PUBLICKEY) names.emplace_back("publickey");
    if (list & SSH_AUTH_METHOD_PASSWORD) names.emplace_back("password");
    if (list & SSH_AUTH_METHOD_INTERACTIVE) names.emplace_back("keyboard-interactive");
    if (list & SSH_AUTH_METHOD_HOSTBASED) names.emplace_back("hostbased");
    if (list & SSH_AUTH_METHOD_GSSAPI_MIC) names.emplace_back("gssapi");
    return names.empty() ? "no method" : fmt::format("{}", fmt::join(names, ", "));
  }

  [[nodiscard]] std::string copy_hint() const {
    const Target& target = job_.target();
    unsigned int port = 22;
    (void)ssh_options_get_port(session_.get(), &port);
    return fmt::format("put a key there with `ssh-copy-id {}{}{}{}`",
                       port == 22 ? "" : fmt::format("-p {} ", port), target.user,
                       target.user.empty() ? "" : "@", target.host);
  }

  SshJob& job_;
  SshSession& session_;
  SshKeys& keys_;
  const SshIdentities& identities_;
  std::vector<std::string> tried_;
  std::vector<std::string> encrypted_;
  std::vector<std::string> missing_;
  bool wants_more_ = false;
  bool is_broken_ = false;
};

}  // namespace

Result<void> authenticate(SshJob& job, SshSession& session, SshKeys& keys,
                          const SshIdentities& identities) {
  return Authentication(job, session, keys, identities).run();
}

}  // namespace hvd
