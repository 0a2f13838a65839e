#include "agent/shim/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "base/unique_fd.h"

namespace hvd {
namespace {

constexpr std::size_t kMaxEnviron = std::size_t{8} << 20U;
constexpr std::size_t kMaxWords = 4096;
constexpr std::size_t kMaxCommand = 256;
constexpr long kKernelThreadFlag = 0x00200000;

std::string read_proc(pid_t pid, const char* name, std::size_t limit) {
  const UniqueFd fd(open(fmt::format("/proc/{}/{}", pid, name).c_str(), O_RDONLY | O_CLOEXEC));
  std::string content;
  std::array<char, 16384> buffer;
  while (fd.is_valid() && content.size() < limit) {
    const ssize_t n =
        read(fd.get(), buffer.data(), std::min(buffer.size(), limit - content.size()));
    if (n <= 0) break;
    content.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return content;
}

bool is_zombie(const ProcStat& process) { return process.state == 'Z' || process.state == 'X'; }

// Whether its folder is ours; root's, if it came from a set-uid program. One cheap call.
bool is_readable(pid_t pid) {
  struct stat status {};
  return stat(fmt::format("/proc/{}", pid).c_str(), &status) == 0 && status.st_uid == geteuid();
}

std::string thread_file(pid_t thread, const char* name) {
  return fmt::format("task/{}/{}", thread, name);
}

// The numbers after the state, in order: ppid is field 4, the first of them.
template <std::size_t N>
bool parse_numbers(std::string_view text, std::array<long long, N>& numbers) {
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (long long& number : numbers) {
    while (at != end && *at == ' ') ++at;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc()) {
      // Fields such as rsslim exceed a signed number; none that we use does.
      if (error != std::errc::result_out_of_range) return false;
    }
    at = next;
  }
  return true;
}

bool holds_entry(std::string_view environ, std::string_view entry) {
  for (std::size_t at = environ.find(entry); at != std::string_view::npos;
       at = environ.find(entry, at + 1)) {
    const std::size_t end = at + entry.size();
    const bool starts = at == 0 || environ[at - 1] == '\0';
    if (starts && (end == environ.size() || environ[end] == '\0')) return true;
  }
  return false;
}

}  // namespace

std::vector<pid_t> numbers_in(const std::string& folder) {
  std::vector<pid_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
  if (!dir) return numbers;
  while (const dirent* entry = readdir(dir.get())) {
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
    numbers.push_back(std::atoi(entry->d_name));
  }
  return numbers;
}

std::optional<ProcStat> parse_stat(std::string_view line) {
  const std::size_t open = line.find('(');
  const std::size_t close = line.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open ||
      close + 3 >= line.size()) {
    return std::nullopt;
  }
  ProcStat process;
  if (std::from_chars(line.data(), line.data() + open, process.pid).ec != std::errc()) {
    return std::nullopt;
  }
  std::array<long long, 19> numbers{};  // fields 4 (ppid) to 22 (start time)
  if (!parse_numbers(line.substr(close + 3), numbers)) return std::nullopt;
  process.comm = line.substr(open + 1, close - open - 1);
  process.state = line[close + 2];
  process.ppid = static_cast<pid_t>(numbers[0]);
  process.pgrp = static_cast<pid_t>(numbers[1]);
  process.session = static_cast<pid_t>(numbers[2]);
  process.is_kernel_thread = (numbers[5] & kKernelThreadFlag) != 0;
  for (int field = 10; field <= 13; ++field) {  // utime, stime, cutime, cstime
    process.cpu_ticks += static_cast<std::uint64_t>(numbers[field]);
  }
  process.num_threads = static_cast<long>(numbers[16]);
  process.start_time = static_cast<std::uint64_t>(numbers[18]);
  return process;
}

bool is_alive(const ProcStat& process) { return !is_zombie(process) || process.num_threads > 1; }

bool has_mark(std::string_view environ, std::string_view job_id, std::uint32_t node) {
  return !job_id.empty() && holds_entry(environ, fmt::format("HVDRUN_JOB_ID={}", job_id)) &&
         holds_entry(environ, fmt::format("HVDRUN_NODE={}", node));
}

std::optional<ProcStat> read_stat(pid_t pid) { return parse_stat(read_proc(pid, "stat", 4096)); }

std::vector<ProcStat> read_process_table() {
  std::vector<ProcStat> table;
  for (const pid_t pid : numbers_in("/proc")) {
    if (auto process = read_stat(pid)) table.push_back(std::move(*process));
  }
  return table;
}

std::string read_environ(const ProcStat& process) {
  // Reading the memory of a process that hangs in the kernel may hang us too.
  if (process.is_kernel_thread || process.state == 'D' || !is_alive(process)) return {};
  if (geteuid() != 0 && !is_readable(process.pid)) return {};
  return read_proc(process.pid, "environ", kMaxEnviron);
}

bool carries_mark(const ProcStat& process, std::string_view job_id, std::uint32_t node) {
  if (job_id.empty()) return false;
  return has_mark(read_environ(process), job_id, node);
}

std::optional<ProcStat> look_at_threads(ProcStat process) {
  if (!is_zombie(process)) return process;
  for (const pid_t thread : numbers_in(fmt::format("/proc/{}/task", process.pid))) {
    const auto stat = parse_stat(read_proc(process.pid, thread_file(thread, "stat").c_str(), 4096));
    if (!stat || is_zombie(*stat)) continue;
    process.state = stat->state;
    process.thread = thread;
    return process;
  }
  return std::nullopt;
}

std::optional<uid_t> parse_user(std::string_view status) {
  constexpr std::string_view kLine = "\nUid:\t";
  const std::size_t line = status.find(kLine);
  if (line == std::string_view::npos) return std::nullopt;
  std::string_view ids = status.substr(line + kLine.size());  // real, effective, saved, file system
  ids.remove_prefix(std::min(ids.find('\t') + 1, ids.size()));
  uid_t user = 0;
  const auto parsed = std::from_chars(ids.data(), ids.data() + ids.size(), user);
  return parsed.ec == std::errc() ? std::optional(user) : std::nullopt;
}

// Not the owner of the folder: that is root for a process that came from a set-uid program.
uid_t user_of(pid_t pid) { return parse_user(read_proc(pid, "status", 4096)).value_or(geteuid()); }

std::string wait_channel_of(const ProcStat& process) {
  const std::string file =
      process.thread == 0 ? std::string("wchan") : thread_file(process.thread, "wchan");
  std::string channel = read_proc(process.pid, file.c_str(), 64);
  return channel == "0" ? std::string() : channel;
}

std::set<std::string> sockets_of(pid_t pid) {
  std::set<std::string> sockets;
  for (const pid_t fd : numbers_in(fmt::format("/proc/{}/fd", pid))) {
    std::array<char, 64> target{};
    const std::string link = fmt::format("/proc/{}/fd/{}", pid, fd);
    const ssize_t size = readlink(link.c_str(), target.data(), target.size());
    const std::string_view name(target.data(),
                                static_cast<std::size_t>(std::max(size, ssize_t{0})));
    constexpr std::string_view kSocket = "socket:[";
    if (name.starts_with(kSocket) && name.ends_with(']')) {
      sockets.emplace(name.substr(kSocket.size(), name.size() - kSocket.size() - 1));
    }
  }
  return sockets;
}

std::vector<std::uint16_t> listening_ports_of(pid_t pid) {
  const std::set<std::string> sockets = sockets_of(pid);
  std::set<std::uint16_t> ports;
  for (const char* table : {"net/tcp", "net/tcp6"}) {
    if (!sockets.empty()) ports.merge(parse_listening(read_proc(pid, table, kMaxEnviron), sockets));
  }
  return {ports.begin(), ports.end()};
}

// Columns: number, local address, remote address, state (0A: listens), queues, timer, retransmits,
// user, time-out, inode.
std::set<std::uint16_t> parse_listening(std::string_view table,
                                        const std::set<std::string>& sockets) {
  std::set<std::uint16_t> ports;
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::array<std::string, 10> columns;
    for (std::string& column : columns) words >> column;
    if (columns[3] != "0A" || !sockets.contains(columns[9])) continue;
    const std::string port = columns[1].substr(columns[1].rfind(':') + 1);
    ports.insert(static_cast<std::uint16_t>(std::strtoul(port.c_str(), nullptr, 16)));
  }
  return ports;
}

std::string words_of(const ProcStat& process) {
  return process.state == 'D' ? std::string() : read_proc(process.pid, "cmdline", kMaxWords);
}

std::string command_of(const ProcStat& process) {
  std::string command = words_of(process).substr(0, kMaxCommand);
  while (!command.empty() && command.back() == '\0') command.pop_back();
  std::replace(command.begin(), command.end(), '\0', ' ');
  return command.empty() ? process.comm : command;
}

}  // namespace hvd
