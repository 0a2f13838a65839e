// What /proc tells of processes: parsing (pure) and reading. Nothing here blocks on a process that
// hangs in the kernel: only files that take no lock of the process are read, and `environ` and
// `cmdline` never of one in uninterruptible sleep.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

struct ProcStat {
  pid_t pid = 0;
  std::string comm;
  char state = '?';
  pid_t ppid = 0;
  pid_t pgrp = 0;
  pid_t session = 0;
  bool is_kernel_thread = false;
  long num_threads = 1;
  std::uint64_t start_time = 0;  // with the pid: the identity of a process on this boot
  pid_t thread = 0;              // whose state it is, where the first thread has ended; else 0
  std::uint64_t cpu_ticks = 0;   // user and system, its own and those of children that it reaped
};

// One line of /proc/PID/stat. The command may hold blanks and parentheses: the last ')' ends it.
[[nodiscard]] std::optional<ProcStat> parse_stat(std::string_view line);

// A zombie is alive as long as another of its threads is: its first thread may end before the rest.
[[nodiscard]] bool is_alive(const ProcStat& process);

// A zombie with the state of a thread that still lives; nothing if there is none: a thread that was
// counted may have ended meanwhile. Another process as it is.
[[nodiscard]] std::optional<ProcStat> look_at_threads(ProcStat process);

// Whether both HVDRUN_JOB_ID=<job> and HVDRUN_NODE=<node> stand in a /proc/PID/environ.
[[nodiscard]] bool has_mark(std::string_view environ, std::string_view job_id, std::uint32_t node);

// The entries of a folder of /proc that are numbers: of processes, threads, descriptors.
[[nodiscard]] std::vector<pid_t> numbers_in(const std::string& folder);

[[nodiscard]] std::optional<ProcStat> read_stat(pid_t pid);
[[nodiscard]] std::vector<ProcStat> read_process_table();

// Its environ, if it may belong to us (same user, or we are root); else empty.
[[nodiscard]] std::string read_environ(const ProcStat& process);
[[nodiscard]] bool carries_mark(const ProcStat& process, std::string_view job_id,
                                std::uint32_t node);

// The effective user in a /proc/PID/status.
[[nodiscard]] std::optional<uid_t> parse_user(std::string_view status);

// Effective user; that of a process that has gone is ours.
[[nodiscard]] uid_t user_of(pid_t pid);
// Where in the kernel it waits; empty: nowhere, or the kernel does not say.
[[nodiscard]] std::string wait_channel_of(const ProcStat& process);
// The numbers of the sockets that it holds, as /proc/net has them. None if we may not see its
// descriptors.
[[nodiscard]] std::set<std::string> sockets_of(pid_t pid);
// TCP ports that it listens on, of its own network namespace. None if we may not see its
// descriptors.
[[nodiscard]] std::vector<std::uint16_t> listening_ports_of(pid_t pid);
// Local ports of a /proc/PID/net/tcp whose socket listens and is one of these (inode numbers).
[[nodiscard]] std::set<std::uint16_t> parse_listening(std::string_view table,
                                                      const std::set<std::string>& sockets);
// Its arguments with the zeros between and after them; empty where that might hang.
[[nodiscard]] std::string words_of(const ProcStat& process);
// Blanks for the zeros between arguments, at most 256 bytes; the command's name if there are none.
[[nodiscard]] std::string command_of(const ProcStat& process);

}  // namespace hvd
