#include "agent/own_children.h"

#include <sys/wait.h>
#include <unistd.h>

#include "agent/shim/proc.h"

namespace hvd {

bool OwnChildren::reap_strays() const {
  const pid_t self = getpid();
  bool is_one_left = false;
  for (const ProcStat& process : read_process_table()) {
    if (process.ppid != self || pids_.contains(process.pid)) continue;
    is_one_left |= waitpid(process.pid, nullptr, WNOHANG) == 0;
  }
  return is_one_left;
}

bool OwnChildren::has_dead_one() {
  siginfo_t dead{};
  return waitid(P_ALL, 0, &dead, WEXITED | WNOHANG | WNOWAIT) == 0 && dead.si_pid != 0;
}

}  // namespace hvd
