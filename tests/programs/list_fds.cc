// list_fds: prints the numbers of its open descriptors on one line, without the one it reads with;
// then on a second line which of the signals 1..31 are ignored and which blocked, in hexadecimal.
#include <dirent.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <set>

int main() {
  std::set<int> fds;
  DIR* dir = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(dir)) {
    if (entry->d_name[0] != '.') fds.insert(std::atoi(entry->d_name));
  }
  fds.erase(dirfd(dir));
  closedir(dir);
  for (const int fd : fds) std::printf("%d ", fd);
  unsigned ignored = 0;
  unsigned blocked = 0;
  sigset_t mask;
  sigprocmask(SIG_BLOCK, nullptr, &mask);
  for (int signal = 1; signal < 32; ++signal) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    ignored |= (action.sa_handler == SIG_IGN ? 1U : 0U) << signal;
    blocked |= (sigismember(&mask, signal) == 1 ? 1U : 0U) << signal;
  }
  std::printf("\n%x %x\n", ignored, blocked);
}
