#include "agent/reap_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"

namespace hvd {

Result<ReapProcess> start_reap(const std::vector<std::string>& command, int stream) {
  fcntl(stream, F_SETFL, fcntl(stream, F_GETFL) & ~O_NONBLOCK);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, stream, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, stream, STDOUT_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ReapProcess reap;
  const int error =
      posix_spawn(&reap.pid, command.front().c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return make_error("cannot start the reap: {}", strerror(error));
  reap.pidfd.reset(sys::pidfd_open(reap.pid));
  if (reap.pidfd.is_valid()) return reap;
  const int why = errno;
  kill(reap.pid, SIGKILL);
  waitpid(reap.pid, nullptr, 0);
  return make_error("cannot watch the reap: {}", strerror(why));
}

}  // namespace hvd
