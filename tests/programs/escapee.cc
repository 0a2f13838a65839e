// escapee [daemon] [deaf] [holding] [stopped] [bare]: starts a process that lives on for ten
// minutes and does what it can to stay: forked twice and in a session of its own (daemon), without
// ears for TERM, INT and HUP (deaf), with the worker's output kept open (holding), stopped by
// itself (stopped), as another program with an empty environment (bare). Its pid is printed; the
// worker exits 0.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace {

bool is_wanted(int argc, char** argv, const char* word) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], word) == 0) return true;
  }
  return false;
}

[[noreturn]] void live_on(int argc, char** argv, int ready) {
  const auto is_asked = [&](const char* word) { return is_wanted(argc, argv, word); };
  if (is_asked("daemon")) setsid();
  if (is_asked("deaf")) {
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) signal(number, SIG_IGN);
  }
  if (!is_asked("holding")) {
    const int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
  }
  const pid_t self = getpid();
  [[maybe_unused]] const ssize_t n = write(ready, &self, sizeof self);
  close(ready);
  if (is_asked("stopped")) raise(SIGSTOP);
  if (is_asked("bare")) {
    char* const words[] = {const_cast<char*>("sleep"), const_cast<char*>("600"), nullptr};
    char* const nothing[] = {nullptr};
    execve("/bin/sleep", words, nothing);
  }
  sleep(600);
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  int ends[2];
  if (pipe(ends) != 0) return 98;
  const pid_t child = fork();
  if (child == 0) {
    if (is_wanted(argc, argv, "daemon") && fork() != 0) _exit(0);
    live_on(argc, argv, ends[1]);
  }
  if (is_wanted(argc, argv, "daemon")) waitpid(child, nullptr, 0);
  pid_t escaped = 0;
  if (read(ends[0], &escaped, sizeof escaped) != sizeof escaped) return 98;
  std::printf("escaped %d\n", static_cast<int>(escaped));
}
