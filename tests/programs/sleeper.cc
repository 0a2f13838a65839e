// sleeper [SECONDS]: sleeps (600 s) and exits 0. Uses nothing of its environment, so that a set-uid
// copy is harmless.
#include <unistd.h>

#include <cstdlib>

int main(int argc, char** argv) {
  unsigned left = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 600;
  while (left > 0) left = sleep(left);
}
