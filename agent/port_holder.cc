#include "agent/port_holder.h"

#include <fmt/format.h>

#include <array>
#include <sstream>

#include "agent/shim/proc.h"
#include "base/parse_number.h"
#include "base/read_file.h"

namespace hvd {
namespace {

// Also what rank 0 has left behind with its socket: that is no stranger.
bool is_of_rank_zero(const ProcStat& process, std::string_view job_id, std::uint32_t node) {
  const std::string environ = '\0' + read_environ(process);
  return has_mark(std::string_view(environ).substr(1), job_id, node) &&
         environ.find(std::string("\0RANK=0\0", 8)) != std::string::npos;
}

std::string describe_holder(const PortListener& listener, std::string_view job_id,
                            std::uint32_t node) {
  for (const ProcStat& process : read_process_table()) {
    if (!sockets_of(process.pid).contains(listener.socket)) continue;
    if (is_of_rank_zero(process, job_id, node)) return {};
    return fmt::format("process {} (uid {}{}): {}", process.pid, user_of(process.pid),
                       carries_mark(process, job_id, node) ? ", of this job" : "",
                       command_of(process));
  }
  return fmt::format("a process of uid {} that cannot be seen from here", listener.user);
}

}  // namespace

// Columns: number, local address, remote address, state (0A: listens), queues, timer, retransmits,
// user, time-out, inode.
std::vector<PortListener> parse_port_listeners(std::string_view table, std::uint16_t port) {
  std::vector<PortListener> listeners;
  const std::string wanted = fmt::format(":{:04X}", port);
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::array<std::string, 10> columns;
    for (std::string& column : columns) words >> column;
    if (columns[3] != "0A" || !columns[1].ends_with(wanted)) continue;
    listeners.push_back({columns[9], parse_number<uid_t>(columns[7]).value_or(0)});
  }
  return listeners;
}

std::string find_port_holder(std::uint16_t port, std::string_view job_id, std::uint32_t node) {
  for (const char* path : {"/proc/self/net/tcp6", "/proc/self/net/tcp"}) {
    const auto table = read_small_file(path);
    for (const PortListener& listener : parse_port_listeners(table, port)) {
      if (std::string holder = describe_holder(listener, job_id, node); !holder.empty()) {
        return holder;
      }
    }
  }
  return {};
}

}  // namespace hvd
