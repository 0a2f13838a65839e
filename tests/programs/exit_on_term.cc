// exit_on_term CODE [MILLISECONDS]: says "ready", waits for SIGTERM, works that long, exits with
// CODE.
#include <time.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigprocmask(SIG_BLOCK, &term, nullptr);
  std::puts("ready");
  std::fflush(stdout);
  int signal = 0;
  sigwait(&term, &signal);
  const long millis = argc > 2 ? std::atol(argv[2]) : 0;
  const timespec work{millis / 1000, millis % 1000 * 1000000};
  nanosleep(&work, nullptr);
  return argc > 1 ? std::atoi(argv[1]) : 0;
}
