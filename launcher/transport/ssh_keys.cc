#include "launcher/transport/ssh_keys.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <array>
#include <cstring>
#include <vector>

#include "base/unix_address.h"

namespace hvd {
namespace {

constexpr timeval kAgentPatience{2, 0};
constexpr std::uint32_t kMaxAgentReply = 256 * 1024;  // as OpenSSH's agents limit it
constexpr unsigned char kRequestIdentities = 11;
constexpr unsigned char kIdentitiesAnswer = 12;

// Called by libssh when a key needs a passphrase, and only then.
int refuse_passphrase(const char*, char*, std::size_t, int, int, void* was_asked) {
  *static_cast<bool*>(was_asked) = true;
  return -1;
}

bool receive_all(int socket, void* target, std::size_t size) {
  return ::recv(socket, target, size, MSG_WAITALL) == static_cast<ssize_t>(size);
}

std::optional<std::size_t> count_agent_keys(int socket) {
  const std::array<unsigned char, 5> request = {0, 0, 0, 1, kRequestIdentities};
  if (::send(socket, request.data(), request.size(), MSG_NOSIGNAL) != 5) return std::nullopt;
  std::uint32_t size = 0;
  if (!receive_all(socket, &size, sizeof(size))) return std::nullopt;
  size = ntohl(size);
  if (size < 5 || size > kMaxAgentReply) return std::nullopt;
  std::vector<unsigned char> reply(size);
  if (!receive_all(socket, reply.data(), size)) return std::nullopt;
  if (reply[0] != kIdentitiesAnswer) return std::nullopt;
  std::uint32_t count = 0;
  std::memcpy(&count, reply.data() + 1, sizeof(count));
  return ntohl(count);
}

void set_patience(int socket, timeval patience) {
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

}  // namespace

std::pair<KeyState, SshKey> SshKeys::read(const std::string& path) {
  const std::lock_guard lock(mutex_);
  auto found = entries_.find(path);
  if (found == entries_.end()) found = entries_.emplace(path, load(path)).first;
  const Entry& entry = found->second;
  if (entry.state != KeyState::kUsable) return {entry.state, nullptr};
  SshKey copy(ssh_key_dup(entry.key.get()));
  if (entry.certificate) ssh_pki_copy_cert_to_privkey(entry.certificate.get(), copy.get());
  return {copy ? KeyState::kUsable : KeyState::kBroken, std::move(copy)};
}

SshKeys::Entry SshKeys::load(const std::string& path) {
  Entry entry;
  bool was_asked = false;
  ssh_key key = nullptr;
  const int result =
      ssh_pki_import_privkey_file(path.c_str(), nullptr, refuse_passphrase, &was_asked, &key);
  entry.key.reset(key);
  if (result == SSH_EOF) return entry;
  entry.state = was_asked          ? KeyState::kEncrypted
                : result == SSH_OK ? KeyState::kUsable
                                   : KeyState::kBroken;
  ssh_key certificate = nullptr;
  const std::string certificate_path = path + "-cert.pub";
  if (::access(certificate_path.c_str(), R_OK) == 0 &&
      ssh_pki_import_cert_file(certificate_path.c_str(), &certificate) == SSH_OK) {
    entry.certificate.reset(certificate);
  }
  return entry;
}

std::optional<SshAgent> connect_ssh_agent(const std::string& socket_path) {
  const sockaddr_un address = unix_address(socket_path);
  if (socket_path.empty() || socket_path.size() >= sizeof(address.sun_path)) return std::nullopt;
  SshAgent link;
  link.socket.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  set_patience(link.socket.get(), kAgentPatience);
  if (::connect(link.socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
      0) {
    return std::nullopt;
  }
  const auto num_keys = count_agent_keys(link.socket.get());
  if (!num_keys) return std::nullopt;
  // A key that wants a touch takes its time; the job's guard ends that wait.
  set_patience(link.socket.get(), timeval{});
  link.num_keys = *num_keys;
  return link;
}

}  // namespace hvd
