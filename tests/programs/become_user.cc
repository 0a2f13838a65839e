// become_user UID: for a copy of it that is set-uid root: turns into that user altogether, prints
// its pid and lives on for ten minutes. Exits 97 if it cannot.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  const auto user = static_cast<uid_t>(argc > 1 ? std::atoi(argv[1]) : 0);
  if (setresuid(user, user, user) != 0) return 97;
  std::printf("pid %d\n", static_cast<int>(getpid()));
  std::fflush(stdout);
  close(STDOUT_FILENO);
  close(STDERR_FILENO);
  sleep(600);
}
