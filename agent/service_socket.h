// The unix socket at which an agent serves: ours alone (0600), in a folder that nobody else can
// change, and never taken from an agent that lives.
//
// Lifecycle: claimed once, before any thread exists (the umask is the process's); the destructor
// removes the socket if it is still ours.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "base/unique_fd.h"

namespace hvd {

class ServiceSocket {
 public:
  // Listens at this absolute path. A socket that stands there is replaced if it is our user's and
  // nobody listens at it any more; anything else is refused.
  [[nodiscard]] static Result<ServiceSocket> claim(const std::string& path);

  ServiceSocket(ServiceSocket&& other) noexcept
      : path_(std::exchange(other.path_, {})),
        socket_(std::move(other.socket_)),
        identity_(other.identity_) {}
  ServiceSocket& operator=(ServiceSocket&&) = delete;
  ~ServiceSocket();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int fd() const { return socket_.get(); }  // listening, non-blocking

  // No more connections; those that wait are cut off.
  void close() { socket_.reset(); }

 private:
  ServiceSocket(std::string path, UniqueFd socket, struct stat identity)
      : path_(std::move(path)), socket_(std::move(socket)), identity_(identity) {}

  std::string path_;  // empty once moved from
  UniqueFd socket_;
  struct stat identity_;
};

// Why a folder of this state on the way to the socket is not safe: it belongs to somebody else, or
// others may put something else in the socket's place. Nothing if it is. Pure.
[[nodiscard]] std::optional<std::string> unsafe_folder(const struct stat& folder, uid_t own);

}  // namespace hvd
