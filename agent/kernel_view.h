// What the kernel tells of a rank that hangs: for each thread of its processes the state, the
// system call and the kernel function in which it waits, and the top of its kernel stack where that
// may be read (root). Threads that wait alike are told once.
//
// The text is made in a process of its own ("hvd-agent stacks PID"): a file of /proc may make its
// reader wait for a process that is stuck in the kernel, and that must not be the agent.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "agent/shim/proc.h"

namespace hvd {

struct ThreadView {
  char state = '?';
  std::string wait_channel;        // "futex_wait_queue"; "0" and empty: none is told
  std::string system_call;         // the line of /proc/PID/task/TID/syscall
  std::vector<std::string> stack;  // lines of /proc/PID/task/TID/stack
};

// "syscall futex (202)"; "running" and "-1 ..." are no system call: empty. Pure.
[[nodiscard]] std::string system_call_text(std::string_view line);

// Lines with ends: one for the process and the threads below it. Pure.
[[nodiscard]] std::string describe_process(const ProcStat& process,
                                           const std::vector<ThreadView>& threads);

// Of the rank's first process and those that belong to it, a bounded number.
[[nodiscard]] std::string describe_rank(pid_t leader);

}  // namespace hvd
