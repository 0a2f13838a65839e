// What /proc tells of processes: parsing (pure) and reading. Nothing here blocks on a process that
// hangs in the kernel: only files that take no lock of the process are read, and `environ` and
// `cmdline` never of one in uninterruptible sleep.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
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
};

// One line of /proc/PID/stat. The command may hold blanks and parentheses: the last ')' ends it.
[[nodiscard]] std::optional<ProcStat> parse_stat(std::string_view line);

// A zombie is alive as long as another of its threads is: its first thread may end before the rest.
[[nodiscard]] bool is_alive(const ProcStat& process);

// Whether both HVDRUN_JOB_ID=<job> and HVDRUN_NODE=<node> stand in a /proc/PID/environ.
[[nodiscard]] bool has_mark(std::string_view environ, std::string_view job_id, std::uint32_t node);

[[nodiscard]] std::optional<ProcStat> read_stat(pid_t pid);
[[nodiscard]] std::vector<ProcStat> read_process_table();

// Reads the process's environ, if it may belong to us (same user, or we are root).
[[nodiscard]] bool carries_mark(const ProcStat& process, std::string_view job_id,
                                std::uint32_t node);

// Effective user; that of a process that has gone is ours.
[[nodiscard]] uid_t user_of(pid_t pid);
[[nodiscard]] std::string wait_channel_of(pid_t pid);
// Blanks for the zeros between arguments, at most 256 bytes; the command's name if there are none.
[[nodiscard]] std::string command_of(const ProcStat& process);

}  // namespace hvd
