#include "agent/shim/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <memory>

#include "base/unique_fd.h"

namespace hvd {
namespace {

constexpr std::size_t kMaxEnviron = std::size_t{8} << 20U;
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
  process.num_threads = static_cast<long>(numbers[16]);
  process.start_time = static_cast<std::uint64_t>(numbers[18]);
  return process;
}

bool is_alive(const ProcStat& process) {
  const bool is_zombie = process.state == 'Z' || process.state == 'X';
  return !is_zombie || process.num_threads > 1;
}

bool has_mark(std::string_view environ, std::string_view job_id, std::uint32_t node) {
  return !job_id.empty() && holds_entry(environ, fmt::format("HVDRUN_JOB_ID={}", job_id)) &&
         holds_entry(environ, fmt::format("HVDRUN_NODE={}", node));
}

std::optional<ProcStat> read_stat(pid_t pid) { return parse_stat(read_proc(pid, "stat", 4096)); }

std::vector<ProcStat> read_process_table() {
  std::vector<ProcStat> table;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir("/proc"), closedir);
  if (!dir) return table;
  while (const dirent* entry = readdir(dir.get())) {
    const int pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    if (auto process = read_stat(pid)) table.push_back(std::move(*process));
  }
  return table;
}

bool carries_mark(const ProcStat& process, std::string_view job_id, std::uint32_t node) {
  // Reading the memory of a process that hangs in the kernel may hang us too.
  if (process.is_kernel_thread || process.state == 'D' || !is_alive(process)) return false;
  if (geteuid() != 0 && user_of(process.pid) != geteuid()) return false;
  return has_mark(read_proc(process.pid, "environ", kMaxEnviron), job_id, node);
}

uid_t user_of(pid_t pid) {
  struct stat status {};
  if (stat(fmt::format("/proc/{}", pid).c_str(), &status) != 0) return geteuid();
  return status.st_uid;
}

std::string wait_channel_of(pid_t pid) { return read_proc(pid, "wchan", 64); }

std::string command_of(const ProcStat& process) {
  std::string command;
  if (process.state != 'D') command = read_proc(process.pid, "cmdline", kMaxCommand);
  while (!command.empty() && command.back() == '\0') command.pop_back();
  std::replace(command.begin(), command.end(), '\0', ' ');
  return command.empty() ? process.comm : command;
}

}  // namespace hvd
