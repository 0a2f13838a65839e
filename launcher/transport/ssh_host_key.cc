#include "launcher/transport/ssh_host_key.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace hvd {
namespace {

constexpr auto kLockSlice = std::chrono::milliseconds(20);

struct HostKey {
  SshKey key;
  std::string fingerprint;  // "SHA256:..."
};

Result<HostKey> server_key(SshSession& session) {
  ssh_key key = nullptr;
  if (ssh_get_server_publickey(session.get(), &key) != SSH_OK) {
    return make_error("the server showed no host key: {}", session.error_text());
  }
  HostKey result{SshKey(key), ""};
  unsigned char* hash = nullptr;
  std::size_t size = 0;
  if (ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &size) == SSH_OK) {
    const SshText text(ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, size));
    if (text) result.fingerprint = text.get();
    ssh_clean_pubkey_hash(&hash);
  }
  return result;
}

unsigned int port_of(SshSession& session) {
  unsigned int port = 22;
  (void)ssh_options_get_port(session.get(), &port);
  return port;
}

// The name under which known_hosts files list the server.
std::string listed_name(SshSession& session) {
  const std::string host = session.option(SSH_OPTIONS_HOST);
  const unsigned int port = port_of(session);
  return port == 22 ? host : fmt::format("[{}]:{}", host, port);
}

// libssh passes over "@revoked" lines.
bool is_revoked_in(const std::string& path, const std::string& name, ssh_key key) {
  constexpr std::string_view kMark = "@revoked ";
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(kMark)) continue;
    ssh_knownhosts_entry* entry = nullptr;
    if (ssh_known_hosts_parse_line(name.c_str(), line.c_str() + kMark.size(), &entry) != SSH_OK) {
      continue;
    }
    const bool is_same = ssh_key_cmp(entry->publickey, key, SSH_KEY_CMP_PUBLIC) == 0;
    ssh_knownhosts_entry_free(entry);
    if (is_same) return true;
  }
  return false;
}

Result<UniqueFd> open_locked(SshJob& job, const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/'));
  ::mkdir(folder.c_str(), 0700);
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file.is_valid()) return make_error("cannot write {}: {}", path, std::strerror(errno));
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (!job.pause(kLockSlice)) return make_error("{} is locked by another program", path);
  }
  return file;
}

// Between our first look and the lock another log-in may have added the same key.
Result<void> append_key(SshJob& job, SshSession& session) {
  const std::string path = session.option(SSH_OPTIONS_KNOWNHOSTS);
  auto file = open_locked(job, path);
  if (!file) return tl::unexpected(file.error());
  if (ssh_session_is_known_server(session.get()) == SSH_KNOWN_HOSTS_OK) return {};
  char* entry = nullptr;
  if (ssh_session_export_known_hosts_entry(session.get(), &entry) != SSH_OK) {
    return make_error("cannot note the host key: {}", session.error_text());
  }
  const SshText owner(entry);
  std::string line(entry);
  if (!line.ends_with('\n')) line += '\n';
  struct stat status {};
  char last = '\n';
  if (::fstat(file->get(), &status) == 0 && status.st_size > 0) {
    (void)!::pread(file->get(), &last, 1, status.st_size - 1);
  }
  if (last != '\n') line.insert(0, 1, '\n');
  if (::write(file->get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    return make_error("cannot write {}: {}", path, std::strerror(errno));
  }
  return {};
}

std::string key_scan_hint(SshSession& session) {
  const unsigned int port = port_of(session);
  return fmt::format("ssh-keyscan {}{} >> {}", port == 22 ? "" : fmt::format("-p {} ", port),
                     session.option(SSH_OPTIONS_HOST), session.option(SSH_OPTIONS_KNOWNHOSTS));
}

}  // namespace

Result<void> check_host_key(SshJob& job, SshSession& session, bool accept_new) {
  auto key = server_key(session);
  if (!key) return tl::unexpected(key.error());
  const std::string user_file = session.option(SSH_OPTIONS_KNOWNHOSTS);
  for (const std::string& path : {user_file, session.option(SSH_OPTIONS_GLOBAL_KNOWNHOSTS)}) {
    if (is_revoked_in(path, listed_name(session), key->key.get())) {
      return make_error("its host key {} is revoked in {}", key->fingerprint, path);
    }
  }
  switch (ssh_session_is_known_server(session.get())) {
    case SSH_KNOWN_HOSTS_OK:
      return {};
    case SSH_KNOWN_HOSTS_CHANGED:
      return make_error(
          "its host key has CHANGED to {}: somebody may be listening, or it was installed anew; if "
          "you "
          "are sure, remove the old key with `ssh-keygen -f {} -R {}`",
          key->fingerprint, user_file, listed_name(session));
    case SSH_KNOWN_HOSTS_OTHER:
      return make_error(
          "its host key {} is of another type than the one in {}: if you are sure, run `{}`",
          key->fingerprint, user_file, key_scan_hint(session));
    case SSH_KNOWN_HOSTS_UNKNOWN:
    case SSH_KNOWN_HOSTS_NOT_FOUND:
      if (accept_new) return append_key(job, session);
      return make_error(
          "its host key {} is unknown: compare it, then run `{}`, or give --accept-new-host-keys",
          key->fingerprint, key_scan_hint(session));
    default:
      return make_error("cannot check its host key: {}", session.error_text());
  }
}

}  // namespace hvd
