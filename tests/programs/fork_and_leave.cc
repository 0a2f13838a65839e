// fork_and_leave [stay|group]: a grandchild in a session of its own (group: in the worker's own
// group) lives on for ten minutes without the worker's pipes; its pid is printed. The worker then
// exits 0, or with `stay` sleeps itself.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace {

[[noreturn]] void live_on(bool has_own_session) {
  if (has_own_session) setsid();
  const int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
  sleep(600);
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  const bool stays = argc > 1 && std::strcmp(argv[1], "stay") == 0;
  const bool is_in_group = argc > 1 && std::strcmp(argv[1], "group") == 0;
  int ends[2];
  if (pipe(ends) != 0) return 98;
  const pid_t child = fork();
  if (child == 0) {
    const pid_t grandchild = fork();
    if (grandchild == 0) live_on(!is_in_group);
    [[maybe_unused]] const ssize_t n = write(ends[1], &grandchild, sizeof grandchild);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  pid_t grandchild = 0;
  if (read(ends[0], &grandchild, sizeof grandchild) != sizeof grandchild) return 98;
  std::printf("%d\n", static_cast<int>(grandchild));
  std::fflush(stdout);
  if (stays) sleep(600);
}
