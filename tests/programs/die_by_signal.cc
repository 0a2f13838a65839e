// die_by_signal N: dies of signal N, without a core file.
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>

int main(int argc, char** argv) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const int signal = argc > 1 ? std::atoi(argv[1]) : SIGKILL;
  std::signal(signal, SIG_DFL);
  raise(signal);
  return 99;  // the signal does not end a process
}
