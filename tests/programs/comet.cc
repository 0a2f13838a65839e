// comet LENGTH: leaves behind a process that forks and exits, whose child does the same, and so on:
// at most LENGTH times, each in a session of its own. Whoever looks for it by number is late. The
// worker exits 0 at once.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

int main(int argc, char** argv) {
  const int length = argc > 1 ? std::atoi(argv[1]) : 0;
  if (fork() != 0) return 0;
  const int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
  signal(SIGCHLD, SIG_IGN);
  for (int i = 0; i < length; ++i) {
    setsid();
    usleep(200);
    const pid_t next = fork();
    if (next != 0) _exit(0);
  }
}
