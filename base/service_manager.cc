#include "base/service_manager.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "base/parse_number.h"

namespace hvd {
namespace {

constexpr int kFirstPassed = 3;
constexpr int kPingsPerTimeout = 3;
constexpr std::size_t kMaxAddress = sizeof sockaddr_un::sun_path;

std::string take_variable(const char* name) {
  const char* value = getenv(name);
  std::string taken = value == nullptr ? "" : value;
  unsetenv(name);
  return taken;
}

bool is_our_pid(std::string_view text) { return parse_number<pid_t>(text) == getpid(); }

// The next of "one:two"; "unknown" where there are no more.
std::string take_name(std::optional<std::string_view>& names) {
  if (!names) return "unknown";
  const std::size_t colon = names->find(':');
  std::string name(names->substr(0, colon));
  if (colon == std::string_view::npos) {
    names.reset();
  } else {
    names->remove_prefix(colon + 1);
  }
  return name;
}

}  // namespace

Result<ServiceManager> ServiceManager::take() {
  ServiceManager manager;
  if (const char* invocation = getenv("INVOCATION_ID")) manager.invocation_ = invocation;
  // All of them, also after an error: none is to be left in the environment.
  const auto notify = manager.take_notify_socket();
  const auto watchdog = manager.take_watchdog();
  const auto listen = manager.take_listen();
  for (const auto* taken : {&notify, &watchdog, &listen}) {
    if (!*taken) return tl::unexpected(taken->error().within("the service manager's environment"));
  }
  return manager;
}

Result<void> ServiceManager::take_notify_socket() {
  std::string address = take_variable("NOTIFY_SOCKET");
  if (address.empty()) return {};
  if ((address[0] != '/' && address[0] != '@') || address.size() < 2 ||
      address.size() >= kMaxAddress) {
    return make_error("NOTIFY_SOCKET={}: no address of a unix socket", address);
  }
  from_.reset(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!from_.is_valid()) return make_error("no socket to tell it anything: {}", strerror(errno));
  address_ = std::move(address);
  return {};
}

Result<void> ServiceManager::take_watchdog() {
  const std::string timeout = take_variable("WATCHDOG_USEC");
  const std::string pid = take_variable("WATCHDOG_PID");
  if (timeout.empty() || (!pid.empty() && !is_our_pid(pid))) return {};
  const auto microseconds = parse_number<std::int64_t>(timeout);
  constexpr std::int64_t kMost = Nanos::max() / std::chrono::microseconds(1);
  if (!microseconds || *microseconds < kPingsPerTimeout || *microseconds > kMost) {
    return make_error("WATCHDOG_USEC={}: no time", timeout);
  }
  watchdog_interval_ = std::chrono::microseconds(*microseconds) / kPingsPerTimeout;
  return {};
}

Result<void> ServiceManager::take_listen() {
  const std::string count = take_variable("LISTEN_FDS");
  const std::string pid = take_variable("LISTEN_PID");
  const std::string all_names = take_variable("LISTEN_FDNAMES");
  if (count.empty() || !is_our_pid(pid)) return {};
  const auto num_passed = parse_number<int>(count);
  if (!num_passed || *num_passed < 0) return make_error("LISTEN_FDS={}: no number", count);
  std::optional<std::string_view> names;
  if (!all_names.empty()) names = all_names;
  for (int i = 0; i < *num_passed; ++i) {
    const int fd = kFirstPassed + i;
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
      return make_error("LISTEN_FDS={}: descriptor {} is not open", count, fd);
    }
    sockets_.push_back({UniqueFd(fd), take_name(names)});
  }
  return {};
}

bool ServiceManager::tell(std::string_view lines) const {
  if (!is_there()) return true;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::copy(address_.begin(), address_.end(), to.sun_path);
  if (address_[0] == '@') to.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  return sendto(from_.get(), lines.data(), lines.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                reinterpret_cast<const sockaddr*>(&to),
                length) == static_cast<ssize_t>(lines.size());
}

bool ServiceManager::extend_timeout(Nanos by) const {
  const auto microseconds = std::chrono::ceil<std::chrono::microseconds>(by).count();
  return tell(fmt::format("EXTEND_TIMEOUT_USEC={}", microseconds));
}

bool is_service_manager_variable(std::string_view name) {
  return std::find(kServiceManagerVariables.begin(), kServiceManagerVariables.end(), name) !=
         kServiceManagerVariables.end();
}

}  // namespace hvd
