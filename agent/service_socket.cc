#include "agent/service_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "base/unix_address.h"

namespace hvd {
namespace {

constexpr int kBacklog = 512;

UniqueFd make_socket() {
  return UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Each folder from the root down to the one that holds the socket; links have been followed.
Result<void> check_folders(const std::string& path) {
  std::error_code error;
  const auto parent = std::filesystem::canonical(std::filesystem::path(path).parent_path(), error);
  if (error) return make_error("cannot serve at {}: its folder: {}", path, error.message());
  std::filesystem::path folder;
  for (const auto& part : parent) {
    folder /= part;
    struct stat info {};
    if (stat(folder.c_str(), &info) != 0) {
      return make_error("cannot serve at {}: {}: {}", path, folder.string(), strerror(errno));
    }
    if (const auto why = unsafe_folder(info, geteuid())) {
      return make_error("cannot serve at {}: {} {}", path, folder.string(), *why);
    }
  }
  return {};
}

// Listening before it gets its name: a socket at which nobody listens is a dead one.
Result<UniqueFd> listen_privately(const std::string& path) {
  UniqueFd socket = make_socket();
  const sockaddr_un address = unix_address(path);
  const mode_t before = umask(0177);
  const bool is_bound =
      socket.is_valid() &&
      bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int why = errno;
  umask(before);
  errno = why;
  if (!is_bound || listen(socket.get(), kBacklog) != 0) {
    return make_error("cannot listen at {}: {}", path, strerror(errno));
  }
  return socket;
}

// What stands at the path is a socket of ours at which nobody listens.
Result<void> check_dead(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return make_error("{}: {}", path, strerror(errno));
  if (!S_ISSOCK(info.st_mode)) {
    return make_error("{} is there and no socket; remove it, or name another path", path);
  }
  if (info.st_uid != geteuid()) {
    return make_error("{} belongs to user {}; name another path", path, info.st_uid);
  }
  const UniqueFd probe = make_socket();
  const sockaddr_un address = unix_address(path);
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno == ECONNREFUSED) {
    return {};
  }
  return make_error("{} is served by a process that lives; stop it, or name another path", path);
}

int rename_with(const std::string& from, const std::string& to, unsigned flags) {
  return renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags);
}

// Gives the listening socket its name. What was there is exchanged, looked at once more, because
// another agent may have come in between, and put back if that lives.
Result<void> take_name(const std::string& fresh, const std::string& path) {
  if (rename_with(fresh, path, RENAME_NOREPLACE) == 0) return {};
  if (errno != EEXIST) return make_error("cannot make {}: {}", path, strerror(errno));
  if (auto dead = check_dead(path); !dead) return dead;
  if (rename_with(fresh, path, RENAME_EXCHANGE) != 0) {
    return make_error("cannot replace {}: {}", path, strerror(errno));
  }
  if (auto dead = check_dead(fresh); !dead) {
    rename_with(fresh, path, RENAME_EXCHANGE);
    return make_error("{} has just been taken by another process", path);
  }
  return {};
}

}  // namespace

std::optional<std::string> unsafe_folder(const struct stat& folder, uid_t own) {
  if (folder.st_uid != own && folder.st_uid != 0) {
    return fmt::format("belongs to user {}; name a folder of your own", folder.st_uid);
  }
  const bool is_sticky = (folder.st_mode & S_ISVTX) != 0;  // as /tmp: others cannot rename ours
  if ((folder.st_mode & 0022) != 0 && !is_sticky) {
    return fmt::format("can be changed by others (mode {:o}); chmod go-w it, or name another",
                       folder.st_mode & 07777);
  }
  return std::nullopt;
}

Result<ServiceSocket> ServiceSocket::claim(const std::string& path) {
  const std::string fresh = fmt::format("{}.{}", path, getpid());
  if (fresh.size() >= sizeof(sockaddr_un::sun_path)) {
    return make_error("{} is too long a path for a socket", path);
  }
  if (auto safe = check_folders(path); !safe) return tl::unexpected(safe.error());
  auto socket = listen_privately(fresh);
  if (!socket) return tl::unexpected(socket.error());
  struct stat identity {};
  lstat(fresh.c_str(), &identity);
  const auto named = take_name(fresh, path);
  unlink(fresh.c_str());  // ours, where it got no name; else the dead one, if there was one
  if (!named) return tl::unexpected(named.error());
  return ServiceSocket(path, std::move(*socket), identity);
}

ServiceSocket::~ServiceSocket() {
  struct stat now {};
  if (path_.empty() || lstat(path_.c_str(), &now) != 0) return;
  if (now.st_ino == identity_.st_ino && now.st_dev == identity_.st_dev) unlink(path_.c_str());
}

}  // namespace hvd
