#include "agent/outside_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/parse_number.h"
#include "base/sys.h"
#include "base/unique_fd.h"

namespace hvd {
namespace {

constexpr int kCannotExecute = 126;

// What a child is set up with; freed on every way out.
class SpawnSetUp {
 public:
  SpawnSetUp(int output, const std::string& cwd) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
    if (!cwd.empty()) posix_spawn_file_actions_addchdir_np(&actions_, cwd.c_str());
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSetUp() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSetUp(const SpawnSetUp&) = delete;
  SpawnSetUp& operator=(const SpawnSetUp&) = delete;

  // 0 or errno.
  int spawn(pid_t* pid, const std::vector<std::string>& words,
            const std::vector<std::string>& env) const {
    return posix_spawn(pid, "/proc/self/exe", &actions_, &attributes_, pointers(words).data(),
                       pointers(env).data());
  }

 private:
  static std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
    result.push_back(nullptr);
    return result;
  }

  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

std::string describe(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  return fmt::format("ended with code {}", WEXITSTATUS(status));
}

}  // namespace

struct OutsideProgram::State : std::enable_shared_from_this<State> {
  State(Loop& loop, Handlers the_handlers)
      : handlers(std::move(the_handlers)), pidfd(loop), output(loop) {}

  void read_on() {
    output.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                      [self = shared_from_this()](const boost::system::error_code& error) {
                        if (error || self->is_over) return;
                        if (self->read_once()) self->read_on();
                      });
  }

  // Whether more may come.
  bool read_once() {
    const ssize_t n = ::read(output.native_handle(), buffer.data(), buffer.size());
    if (n > 0) handlers.on_bytes({buffer.data(), static_cast<std::size_t>(n)});
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
  }

  void watch() {
    pidfd.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       if (!error && !self->is_over) self->take_end();
                     });
  }

  [[nodiscard]] bool has_bytes() {
    pollfd look{output.native_handle(), POLLIN, 0};
    return poll(&look, 1, 0) == 1 && (look.revents & POLLIN) != 0;
  }

  // Whoever still holds the pipe is not waited for: only what has been written is read.
  void take_end() {
    int status = 0;
    kill_group();
    const bool is_known = waitpid(pid, &status, WNOHANG) == pid;
    is_reaped = true;
    while (has_bytes()) read_once();
    const auto on_end = std::move(handlers.on_end);
    close();
    if (on_end) on_end(is_known ? describe(status) : "has gone");
  }

  // Only before the leader is reaped: until then its number is certainly ours.
  void kill_group() const {
    ::kill(-pid, SIGKILL);
    ::kill(pid, SIGKILL);
  }

  void close() {
    if (std::exchange(is_over, true)) return;
    handlers = {};
    if (!is_reaped) {
      kill_group();
      reap();
    }
    boost::system::error_code ignored;
    output.close(ignored);
    if (is_reaped) pidfd.close(ignored);
  }

  // A killed program is reaped when it has gone, which nobody waits for.
  void reap() {
    pidfd.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       if (!error) waitpid(self->pid, nullptr, WNOHANG);
                     });
  }

  Handlers handlers;
  pid_t pid = -1;
  boost::asio::posix::stream_descriptor pidfd;
  boost::asio::posix::stream_descriptor output;
  std::array<char, 16384> buffer{};
  bool is_reaped = false;
  bool is_over = false;  // nothing more is told
};

Result<std::unique_ptr<OutsideProgram>> OutsideProgram::start(Loop& loop, const Request& request,
                                                              Handlers handlers) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return make_error("{}: no pipe: {}", request.executable, strerror(errno));
  }
  UniqueFd from(ends[0]);
  const UniqueFd to(ends[1]);
  fcntl(from.get(), F_SETFL, O_NONBLOCK);
  std::vector<std::string> words = {"hvd-agent", "guard", fmt::format_int(getpid()).str(),
                                    request.executable};
  words.insert(words.end(), request.words.begin(), request.words.end());
  std::vector<std::string> env;
  for (const auto& [name, value] : request.env) env.push_back(fmt::format("{}={}", name, value));
  auto state = std::make_shared<State>(loop, std::move(handlers));
  const int error = SpawnSetUp(to.get(), request.cwd).spawn(&state->pid, words, env);
  if (error != 0) {
    return make_error("{} cannot be started: {}", request.executable, strerror(error));
  }
  UniqueFd pidfd(sys::pidfd_open(state->pid));
  if (!pidfd.is_valid()) {
    const int why = errno;
    ::kill(state->pid, SIGKILL);
    waitpid(state->pid, nullptr, 0);
    return make_error("{} cannot be watched: {}", request.executable, strerror(why));
  }
  boost::system::error_code ignored;
  state->pidfd.assign(pidfd.release(), ignored);
  state->output.assign(from.release(), ignored);
  state->watch();
  state->read_on();
  return std::unique_ptr<OutsideProgram>(new OutsideProgram(std::move(state)));
}

OutsideProgram::~OutsideProgram() { state_->close(); }

int run_guarded(int argc, char** argv) {
  constexpr int kExecutable = 3;
  const auto parent = argc > kExecutable + 1 ? parse_number<pid_t>(argv[2]) : std::nullopt;
  if (!parent) return kCannotExecute;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != *parent) return kCannotExecute;
  execv(argv[kExecutable], argv + kExecutable + 1);
  fprintf(stderr, "%s: %s\n", argv[kExecutable], strerror(errno));
  return kCannotExecute;
}

}  // namespace hvd
