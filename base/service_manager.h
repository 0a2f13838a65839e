// The service manager that has started this program (systemd), by its own protocols: what it passes
// in the environment, and what it is told by datagrams (sd_notify(3), sd_listen_fds(3),
// sd_watchdog_enabled(3)). Where there is none, nothing has an effect.
//
// Lifecycle: take() once, before any thread, any child and any reading of the environment; then as
// long as somebody has to be told. Thread: take() the first one's; tell() any.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace hvd {

class ServiceManager {
 public:
  // Reads and unsets NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID, LISTEN_FDS, LISTEN_PID and
  // LISTEN_FDNAMES: a child would take them for its own. A watchdog and sockets that are another
  // process's are left alone. An error names a value that cannot be used.
  [[nodiscard]] static Result<ServiceManager> take();

  // Nobody is there.
  ServiceManager() = default;

  // Whether it waits for READY=1.
  [[nodiscard]] bool is_there() const { return !address_.empty(); }

  // Lines of NAME=VALUE, as in sd_notify(3): "READY=1\nSTATUS=2 jobs". One datagram, and nobody
  // waits: false if it was not taken now (the manager's queue is full, or it is being replaced), to
  // be tried again where it matters, as for READY=1. True where nobody is there. A stranger's words
  // go through shown() (base/shown.h): a newline in them would be a line of theirs.
  [[nodiscard]] bool tell(std::string_view lines) const;

  // Start or stop take so much longer from now on. To be told again before that has passed.
  [[nodiscard]] bool extend_timeout(Nanos by) const;

  // How often "WATCHDOG=1" is to be told: a third of the time after which the manager takes this
  // process for dead. Nothing: there is no watchdog.
  [[nodiscard]] std::optional<Nanos> watchdog_interval() const { return watchdog_interval_; }

  struct PassedSocket {
    UniqueFd fd;       // closes on exec
    std::string name;  // FileDescriptorName= of the socket unit; "unknown" where none was told
  };
  // Those that the manager listens at for us, in its order. A second call has none; those that
  // nobody takes are closed with this.
  [[nodiscard]] std::vector<PassedSocket> take_sockets() { return std::exchange(sockets_, {}); }

  // INVOCATION_ID, which stays in the environment: 32 hexadecimal digits, new with every start.
  // Empty: none.
  [[nodiscard]] const std::string& invocation() const { return invocation_; }

 private:
  [[nodiscard]] Result<void> take_notify_socket();
  [[nodiscard]] Result<void> take_watchdog();
  [[nodiscard]] Result<void> take_listen();

  std::string address_;  // of its socket; begins with '@' if it is an abstract one
  UniqueFd from_;
  std::optional<Nanos> watchdog_interval_;
  std::vector<PassedSocket> sockets_;
  std::string invocation_;
};

// What a service manager tells the service itself, and nobody whom the service starts: source
// systemd.exec(5), "Environment variables set or propagated by the service manager", without those
// that are of the user or the session (PATH, LANG, USER, LOGNAME, HOME, SHELL, XDG_RUNTIME_DIR,
// TERM).
inline constexpr std::array kServiceManagerVariables = {"NOTIFY_SOCKET",
                                                        "WATCHDOG_USEC",
                                                        "WATCHDOG_PID",
                                                        "LISTEN_FDS",
                                                        "LISTEN_PID",
                                                        "LISTEN_FDNAMES",
                                                        "LISTEN_PIDFDID",
                                                        "FDSTORE",
                                                        "INVOCATION_ID",
                                                        "JOURNAL_STREAM",
                                                        "LOG_NAMESPACE",
                                                        "SYSTEMD_EXEC_PID",
                                                        "MAINPID",
                                                        "MANAGERPID",
                                                        "MAINPIDFDID",
                                                        "MANAGERPIDFDID",
                                                        "CREDENTIALS_DIRECTORY",
                                                        "RUNTIME_DIRECTORY",
                                                        "STATE_DIRECTORY",
                                                        "CACHE_DIRECTORY",
                                                        "LOGS_DIRECTORY",
                                                        "CONFIGURATION_DIRECTORY",
                                                        "MEMORY_PRESSURE_WATCH",
                                                        "MEMORY_PRESSURE_WRITE",
                                                        "TRIGGER_UNIT",
                                                        "TRIGGER_PATH",
                                                        "TRIGGER_TIMER_REALTIME_USEC",
                                                        "TRIGGER_TIMER_MONOTONIC_USEC"};

[[nodiscard]] bool is_service_manager_variable(std::string_view name);

}  // namespace hvd
