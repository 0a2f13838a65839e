#include "runtime/tcp_rendezvous.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace hvd {
namespace {

constexpr std::size_t kMaxValue = 64 * 1024;

tl::unexpected<Error> no_value(const std::string& key, std::chrono::milliseconds timeout) {
  return make_error(ExitCode::kTimeout, "rendezvous: key '{}' was not put within {} ms", key,
                    timeout.count());
}

Result<void> write_file(const std::string& path, const std::string& value) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.is_valid()) return make_error("rendezvous: {}: {}", path, strerror(errno));
  const ssize_t written = write(file.get(), value.data(), value.size());
  if (written == static_cast<ssize_t>(value.size())) return {};
  return make_error("rendezvous: {}: {}", path, written < 0 ? strerror(errno) : "short write");
}

std::optional<std::string> read_file(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_valid()) return std::nullopt;
  std::string value(kMaxValue, '\0');
  const ssize_t size = read(file.get(), value.data(), value.size());
  value.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return value;
}

}  // namespace

Result<void> InMemoryRendezvous::put(const std::string& key, const std::string& value,
                                     Timeout /*timeout*/) {
  {
    const std::lock_guard lock(mutex_);
    const auto [found, is_new] = values_.emplace(key, value);
    if (!is_new && found->second != value) {
      return make_error("rendezvous: key '{}' has another value already", key);
    }
  }
  changed_.notify_all();
  return {};
}

Result<std::string> InMemoryRendezvous::get(const std::string& key, Timeout timeout) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, timeout, [&] { return values_.contains(key); })) {
    return no_value(key, timeout);
  }
  return values_.at(key);
}

std::string FolderRendezvous::path_of(const std::string& key) const {
  std::string name = key;
  std::replace(name.begin(), name.end(), '/', '.');
  return folder_ + "/" + name;
}

// Appears whole, by a rename.
Result<void> FolderRendezvous::put(const std::string& key, const std::string& value,
                                   Timeout /*timeout*/) {
  const std::string path = path_of(key);
  const std::string unfinished = path + "~";
  auto written = write_file(unfinished, value);
  if (!written) return written;
  if (rename(unfinished.c_str(), path.c_str()) == 0) return {};
  return make_error("rendezvous: {}: {}", path, strerror(errno));
}

// Woken by the kernel on a change of the folder, and every 50 ms where that says nothing (network
// file systems).
Result<std::string> FolderRendezvous::get(const std::string& key, Timeout timeout) {
  const SteadyTime end = std::chrono::steady_clock::now() + timeout;
  const UniqueFd watch(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!watch.is_valid() || inotify_add_watch(watch.get(), folder_.c_str(), IN_MOVED_TO) < 0) {
    return make_error("rendezvous: cannot watch folder {}: {}", folder_, strerror(errno));
  }
  const std::string path = path_of(key);
  for (;;) {
    if (auto value = read_file(path)) return *std::move(value);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return no_value(key, timeout);
    pollfd changed{watch.get(), POLLIN, 0};
    poll(&changed, 1, static_cast<int>(std::min<long>(left.count(), 50)));
    char events[4096];
    while (read(watch.get(), events, sizeof events) > 0) {
    }
  }
}

}  // namespace hvd
