#include "launcher/transport/ssh_login.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>

#include "launcher/transport/ssh_auth.h"
#include "launcher/transport/ssh_config_scan.h"
#include "launcher/transport/ssh_dial.h"
#include "launcher/transport/ssh_host_key.h"
#include "launcher/transport/ssh_paths.h"

namespace hvd {
namespace {

// AES in hardware is the fastest of them for bulk; the rest is what libssh would offer. A Ciphers
// line of the user's wins.
constexpr const char* kCiphers =
    "aes128-gcm@openssh.com,chacha20-poly1305@openssh.com,aes256-gcm@openssh.com,"
    "aes128-ctr,aes192-ctr,aes256-ctr";

// sshd drops connections at random when too many log in at once (MaxStartups).
constexpr std::array kPauses = {
    std::chrono::duration<double>(0.5), std::chrono::duration<double>(1.0),
    std::chrono::duration<double>(2.0), std::chrono::duration<double>(4.0)};

// libssh has no code for it, only these words.
bool is_dropped_connection(std::string_view text) {
  for (const std::string_view words : {"Socket error", "Exceeded MaxStartups", "Connection reset",
                                       "disconnected", "Connection closed"}) {
    if (text.find(words) != std::string_view::npos) return true;
  }
  return false;
}

class Login {
 public:
  Login(SshJob& job, const SshLoginConfig& config, SshKeys& keys, const std::string& command)
      : job_(job),
        config_(config),
        keys_(keys),
        command_(command),
        session_(std::make_unique<SshSession>()) {}

  Result<std::unique_ptr<SshSession>> run() {
    auto done = read_config();
    if (done) done = connect();
    if (done) done = exchange_keys();
    if (!done) return tl::unexpected(done.error());
    done = check_host_key(job_, *session_, config_.accept_new_host_keys);
    if (done) job_.enter(Phase::kAuthenticate);
    if (done) done = authenticate(job_, *session_, keys_, identities());
    if (done) job_.enter(Phase::kStartAgent);
    if (done) done = session_->execute(command_);
    if (!done) return tl::unexpected(done.error());
    return std::move(session_);
  }

 private:
  template <typename T>
  void set(ssh_options_e name, const T& value) {
    ssh_options_set(session_->get(), name, &value);
  }
  void set_text(ssh_options_e name, const std::string& value) {
    ssh_options_set(session_->get(), name, value.c_str());
  }

  // The host is set before the files are read, because their blocks are judged by it.
  Result<void> read_config() {
    const Target& target = job_.target();
    set_text(SSH_OPTIONS_HOST, target.host);
    if (!target.user.empty()) set_text(SSH_OPTIONS_USER, target.user);
    const unsigned int port = target.port != 0 ? target.port : config_.port;
    if (port != 0) set(SSH_OPTIONS_PORT, port);
    set_text(SSH_OPTIONS_CIPHERS_C_S, kCiphers);
    set_text(SSH_OPTIONS_CIPHERS_S_C, kCiphers);
    const char* file = config_.config_file.empty() ? nullptr : config_.config_file.c_str();
    if (file && ::access(file, R_OK) != 0) {
      return make_error(ExitCode::kUsage, "cannot read {}: {}", file, std::strerror(errno));
    }
    if (ssh_options_parse_config(session_->get(), file) != SSH_OK) {
      return make_error(
          "{} has a line that libssh cannot read; ssh itself can be used with "
          "--transport command --rsh 'ssh {{host}}'",
          file ? file : "ssh_config");
    }
    set(SSH_OPTIONS_PROCESS_CONFIG, false);
    set(SSH_OPTIONS_STRICTHOSTKEYCHECK, 1);
    // A LogLevel of the configuration would have libssh write to our stderr.
    set(SSH_OPTIONS_LOG_VERBOSITY, SSH_LOG_NOLOG);
    // No operation of its own may end before our deadline, which a shut-down socket enforces.
    const long seconds =
        std::chrono::ceil<std::chrono::seconds>(job_.deadline() - std::chrono::steady_clock::now())
            .count() +
        1;
    set(SSH_OPTIONS_TIMEOUT, seconds);
    return {};
  }

  [[nodiscard]] std::uint16_t port() const {
    unsigned int port = 22;
    (void)ssh_options_get_port(session_->get(), &port);
    return static_cast<std::uint16_t>(port);
  }

  Result<void> connect() {
    const std::string proxy = session_->option(SSH_OPTIONS_PROXYCOMMAND);
    auto socket = proxy.empty()
                      ? dial(job_, session_->option(SSH_OPTIONS_HOST), port(), config_.lease)
                      : start_proxy(proxy);
    if (!socket) return tl::unexpected(socket.error());
    guard_.emplace(job_, socket->get());
    set(SSH_OPTIONS_FD, socket->release());
    return {};
  }

  // libssh would fork in a threaded process and throw the program's errors away.
  Result<UniqueFd> start_proxy(const std::string& command) {
    job_.enter(Phase::kConnect);
    const std::string host = session_->option(SSH_OPTIONS_HOST);
    const std::string port_text = std::to_string(port());
    const std::string user = session_->option(SSH_OPTIONS_USER);
    const SshTokens tokens{host, job_.target().host, port_text, user};
    auto child = spawn_child({"/bin/sh", "-c", "exec " + expand_ssh_tokens(command, tokens)});
    if (!child) return tl::unexpected(child.error());
    set_text(SSH_OPTIONS_PROXYCOMMAND, "none");
    UniqueFd stream = std::move(child->stream);
    session_->set_proxy(std::move(*child));
    return stream;
  }

  Result<void> exchange_keys() {
    if (ssh_connect(session_->get()) == SSH_OK) return {};
    const std::string proxy_errors = session_->read_proxy_errors();
    if (!proxy_errors.empty()) return make_error("the proxy said: {}", proxy_errors);
    const std::string text = session_->error_text();
    auto error = make_error("the key exchange failed: {}", text);
    error.value().may_retry = is_dropped_connection(text);
    return error;
  }

  [[nodiscard]] SshIdentities identities() const {
    std::vector<std::string> files = {config_.config_file};
    if (config_.config_file.empty()) files = {ssh_home() + "/.ssh/config", "/etc/ssh/ssh_config"};
    const SshConfigExtras extras = scan_ssh_config(files, job_.target().host);
    const std::string host = session_->option(SSH_OPTIONS_HOST);
    const std::string port_text = std::to_string(port());
    const std::string user = session_->option(SSH_OPTIONS_USER);
    const SshTokens tokens{host, job_.target().host, port_text, user};

    SshIdentities result;
    const std::string& key = job_.target().key.empty() ? config_.identity_file : job_.target().key;
    if (!key.empty()) result.named_files.push_back(expand_home(key));
    for (const std::string& file : extras.identity_files) {
      result.named_files.push_back(expand_ssh_path(file, tokens));
    }
    if (result.named_files.empty()) {
      for (const char* name : {"id_ed25519", "id_ecdsa", "id_rsa"}) {
        result.default_files.push_back(ssh_home() + "/.ssh/" + name);
      }
    }
    result.agent_socket = agent_socket(extras.identity_agent, tokens);
    return result;
  }

  static std::string agent_socket(const std::string& configured, const SshTokens& tokens) {
    const char* from_environment = std::getenv("SSH_AUTH_SOCK");
    const std::string usual = from_environment ? from_environment : "";
    if (configured.empty() || configured == "SSH_AUTH_SOCK") return usual;
    return configured == "none" ? "" : expand_ssh_path(configured, tokens);
  }

  SshJob& job_;
  const SshLoginConfig& config_;
  SshKeys& keys_;
  const std::string& command_;
  std::unique_ptr<SshSession> session_;
  std::optional<SshJob::Guard> guard_;
};

}  // namespace

Result<std::unique_ptr<SshSession>> log_in(SshJob& job, const SshLoginConfig& config, SshKeys& keys,
                                           const std::string& command) {
  std::minstd_rand random{std::random_device{}()};
  std::uniform_real_distribution<double> spread(0.5, 1.5);
  for (std::size_t attempt = 0;; ++attempt) {
    auto session = Login(job, config, keys, command).run();
    if (session || !session.error().may_retry || attempt == kPauses.size()) return session;
    const auto pause = std::chrono::duration_cast<Nanos>(kPauses[attempt] * spread(random));
    if (!job.pause(pause)) return session;
  }
}

}  // namespace hvd
