#include "launcher/transport/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>

#include "base/stream_pair.h"

extern char** environ;

namespace hvd {
namespace {

// What posix_spawn is told: own group, default signals (an inherited SIG_IGN of HUP stays), nothing
// blocked, and the three standard descriptors. All else is close-on-exec.
class SpawnPlan {
 public:
  SpawnPlan(int stream, int error_pipe) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, stream, 0);
    posix_spawn_file_actions_adddup2(&actions_, stream, 1);
    posix_spawn_file_actions_adddup2(&actions_, error_pipe, 2);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes_, 0);
    sigset_t defaults;
    sigemptyset(&defaults);
    for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGCHLD, SIGUSR1, SIGUSR2, SIGTSTP,
                             SIGTTIN, SIGTTOU}) {
      sigaddset(&defaults, signal);
    }
    posix_spawnattr_setsigdefault(&attributes_, &defaults);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  int run(const std::vector<std::string>& words, pid_t* pid) const {
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    return ::posix_spawnp(pid, argv[0], &actions_, &attributes_, argv.data(), environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

Result<ChildProcess> spawn_child(const std::vector<std::string>& words) {
  auto pair = make_stream_pair();
  if (!pair) return tl::unexpected(pair.error());
  auto& [ours, theirs] = *pair;
  // The child's end blocks: most programs expect that of their standard input.
  ::fcntl(theirs.get(), F_SETFL, ::fcntl(theirs.get(), F_GETFL) & ~O_NONBLOCK);
  int pipe_fds[2];
  if (::pipe2(pipe_fds, O_CLOEXEC) != 0) {
    return make_error("cannot make a pipe: {}", std::strerror(errno));
  }
  ChildProcess child;
  child.error_pipe.reset(pipe_fds[0]);
  const UniqueFd error_write_end(pipe_fds[1]);
  ::fcntl(child.error_pipe.get(), F_SETFL, O_NONBLOCK);

  const SpawnPlan plan(theirs.get(), error_write_end.get());
  const int error = plan.run(words, &child.pid);
  if (error != 0) return make_error("cannot run {}: {}", words[0], std::strerror(error));
  child.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
  if (!child.pidfd.is_valid()) {
    const int pidfd_error = errno;
    ::kill(-child.pid, SIGKILL);
    ::waitpid(child.pid, nullptr, 0);
    return make_error("cannot watch {}: {}", words[0], std::strerror(pidfd_error));
  }
  child.stream = std::move(ours);
  return child;
}

std::string describe_ending(const ChildEnding& ending) {
  if (ending.code == CLD_EXITED) return fmt::format("exit {}", ending.status);
  const char* name = ::sigabbrev_np(ending.status);
  return name ? fmt::format("SIG{}", name) : fmt::format("signal {}", ending.status);
}

}  // namespace hvd
