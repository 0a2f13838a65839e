// System calls that the C library lacks or hides (it must run on kernels from 5.4 on): process
// descriptors, looking at a child before reaping it, descriptors in bulk. Thin, no state; every
// function but close_from() may be called between clone and exec. Errors are errno, as in the
// kernel.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

namespace hvd::sys {

// Can only be read by setting it: no other thread may make files meanwhile.
inline mode_t current_umask() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return mask;
}

inline int pidfd_open(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

inline int pidfd_send_signal(int pidfd, int signal) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0));
}

// fork() that also gives a process descriptor. The child gets 0, as from fork(). Where clone3 is
// missing or forbidden (a container's seccomp filter), fork and pidfd_open do the same: the child
// cannot be reaped by anybody else in between. `cgroup`: descriptor of the cgroup v2 folder in
// which the child is born, -1: ours; what the kernel refuses there is an error and no child.
inline pid_t fork_with_pidfd(int* pidfd, int cgroup = -1) {
  clone_args args{};
  args.flags = CLONE_PIDFD;
  args.pidfd = reinterpret_cast<std::uintptr_t>(pidfd);
  args.exit_signal = SIGCHLD;
  if (cgroup >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(cgroup);
  }
  const long cloned = syscall(SYS_clone3, &args, sizeof args);
  if (cloned >= 0 || cgroup >= 0 || (errno != ENOSYS && errno != EPERM)) {
    return static_cast<pid_t>(cloned);
  }
  const pid_t pid = fork();
  if (pid > 0) *pidfd = pidfd_open(pid);
  return pid;
}

// waitid() with resource use, which the C library's wrapper leaves out. P_PIDFD is 3.
inline constexpr int kWaitPidfd = 3;
inline int wait_id(int kind, int id, siginfo_t* info, int options, rusage* usage) {
  return static_cast<int>(syscall(SYS_waitid, kind, id, info, options, usage));
}

// Marks every descriptor from `first` on close-on-exec. Fails before kernel 5.11.
inline int mark_close_on_exec_from(unsigned first) {
  constexpr unsigned kCloseRangeCloexec = 1U << 2U;
  return static_cast<int>(syscall(SYS_close_range, first, ~0U, kCloseRangeCloexec));
}

// Closes every descriptor from `first` on except `keep`, by the list in /proc where the kernel has
// no close_range. A loop up to the limit is no way: half a million calls take half a second.
inline void close_from_by_list(int first, int keep) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir("/proc/self/fd"), closedir);
  if (!dir) return;
  std::vector<int> open;
  while (const dirent* entry = readdir(dir.get())) {
    const int fd = std::atoi(entry->d_name);
    if (fd >= first && fd != keep && fd != dirfd(dir.get())) open.push_back(fd);
  }
  for (const int fd : open) close(fd);
}

inline void close_from(int first, int keep) {
  const auto close_range = [](unsigned low, unsigned high) {
    return low > high || syscall(SYS_close_range, low, high, 0) == 0;
  };
  const bool is_inside = keep >= first;
  const bool is_done = is_inside ? close_range(first, keep - 1) && close_range(keep + 1, ~0U)
                                 : close_range(first, ~0U);
  if (!is_done) close_from_by_list(first, keep);
}

}  // namespace hvd::sys
