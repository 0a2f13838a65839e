#include "agent/shim_process.h"

#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

namespace hvd {
namespace {

constexpr int kShimSocket = 3;

// File actions are freed on every way out.
class FileActions {
 public:
  explicit FileActions(int socket) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, socket, kShimSocket);
    posix_spawn_file_actions_addclosefrom_np(&actions_, kShimSocket + 1);
  }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

}  // namespace

Result<ShimProcess> start_shim(const AgentArguments& arguments) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return make_error("cannot make the shim's socket: {}", strerror(errno));
  }
  ShimProcess shim;
  shim.socket.reset(ends[0]);
  const UniqueFd theirs(ends[1]);
  const FileActions actions(theirs.get());
  const std::string node = std::to_string(arguments.node.value_or(0));
  std::vector<const char*> argv = {"hvd-agent", "shim"};
  if (arguments.node) {
    argv.insert(argv.end(), {"--job", arguments.job_id.c_str(), "--node", node.c_str()});
  }
  argv.push_back(nullptr);
  const int error = posix_spawn(&shim.pid, "/proc/self/exe", actions.get(), nullptr,
                                const_cast<char* const*>(argv.data()), environ);
  if (error != 0) return make_error("cannot start hvd-shim: {}", strerror(error));
  shim.pidfd.reset(static_cast<int>(syscall(SYS_pidfd_open, shim.pid, 0)));
  return shim;
}

}  // namespace hvd
