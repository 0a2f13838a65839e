// hold_pipe [SECONDS]: exits 0 at once; a child in its group keeps stdout and stderr open for
// SECONDS (600) and writes nothing.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 600;
  std::puts("leaving");
  std::fflush(stdout);
  if (fork() == 0) {
    sleep(static_cast<unsigned>(seconds));
    _exit(0);
  }
}
