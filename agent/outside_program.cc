#include "agent/outside_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "agent/guard.h"
#include "agent/leftovers.h"
#include "agent/own_children.h"
#include "base/sys.h"
#include "base/unique_fd.h"

namespace hvd {
namespace {

constexpr Nanos kSweepLimit = std::chrono::seconds(2);

// What a child is set up with; freed on every way out.
class SpawnSetUp {
 public:
  SpawnSetUp(int input, int output, const std::string& cwd) {
    posix_spawn_file_actions_init(&actions_);
    if (input < 0) {
      posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    } else {
      posix_spawn_file_actions_adddup2(&actions_, input, STDIN_FILENO);
    }
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

// What has come to us, a sub-reaper, since a guard began; what is older is none of its program's.
Container orphans_since(std::uint64_t begun) {
  Container orphans;
  orphans.root = getpid();
  for (const ProcStat& process : read_process_table()) {
    const bool is_older = process.ppid == orphans.root && process.start_time < begun;
    if (is_older) orphans.excluded.insert(process.pid);
  }
  return orphans;
}

std::string describe(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  return fmt::format("ended with code {}", WEXITSTATUS(status));
}

struct Round {
  Round(Loop& loop, Container container)
      : orphans(loop, std::move(container), {}), end(loop, 2 * kSweepLimit) {}
  Leftovers orphans;
  boost::asio::steady_timer end;
};

}  // namespace

struct OutsideProgram::State : std::enable_shared_from_this<State> {
  State(Loop& the_loop, Handlers the_handlers)
      : loop(the_loop), handlers(std::move(the_handlers)), pidfd(the_loop), output(the_loop) {}

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
    const bool is_known = waitpid(pid, &status, WNOHANG) == pid;
    is_reaped = true;
    child.reset();
    if (WIFSIGNALED(status)) sweep_orphans();
    while (has_bytes()) read_once();
    const auto on_end = std::move(handlers.on_end);
    close();
    if (on_end) on_end(is_known ? describe(status) : "has gone");
  }

  // A guard that was killed itself has ended nobody. The loop owns the round, by the wait for its
  // end: the program may be given up meanwhile.
  void sweep_orphans() const {
    const auto round = std::make_shared<Round>(loop, orphans_since(begun));
    round->end.async_wait([round](const boost::system::error_code&) {});
    round->orphans.sweep(kSweepLimit,
                         [end = &round->end](const std::vector<ProcStat>&) { end->cancel(); });
  }

  // Only before the guard is reaped: until then its number is certainly ours. One that the program
  // has stopped goes on.
  void end_guard() const {
    ::kill(pid, SIGTERM);
    ::kill(pid, SIGCONT);
  }

  void close() {
    if (std::exchange(is_over, true)) return;
    handlers = {};
    if (!is_reaped) {
      end_guard();
      child.reset();
      reap();
    }
    boost::system::error_code ignored;
    output.close(ignored);
    if (is_reaped) pidfd.close(ignored);
  }

  // The guard is reaped when it has gone, which nobody waits for.
  void reap() {
    pidfd.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       if (!error) waitpid(self->pid, nullptr, WNOHANG);
                     });
  }

  Loop& loop;
  Handlers handlers;
  pid_t pid = -1;                 // of the guard
  std::uint64_t begun = 0;        // its start time, as in ProcStat
  std::optional<OwnChild> child;  // as long as it is wanted
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
  const std::vector<std::string> words =
      guard_words({request.executable, request.words, request.cgroup}, getpid());
  std::vector<std::string> env;
  for (const auto& [name, value] : request.env) env.push_back(fmt::format("{}={}", name, value));
  auto state = std::make_shared<State>(loop, std::move(handlers));
  const int error = SpawnSetUp(request.input, to.get(), request.cwd).spawn(&state->pid, words, env);
  if (error != 0) {
    return make_error("{} cannot be started: {}", request.executable, strerror(error));
  }
  state->child.emplace(loop, state->pid);
  if (const auto guard = read_stat(state->pid)) state->begun = guard->start_time;
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

}  // namespace hvd
