#include "agent/guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "agent/shim/containment.h"
#include "agent/shim/job_cgroup.h"
#include "base/clock.h"
#include "base/parse_number.h"
#include "base/unique_fd.h"

namespace hvd {
namespace {

constexpr int kCannotExecute = 126;
constexpr const char* kLeaf = "beside";  // the job's cgroup itself can hold no process
// What outlives SIGKILL so long hangs in the kernel; nobody waits for it.
constexpr Nanos kSweepLimit = std::chrono::seconds(2);

enum Position { kParent = 2, kCgroup, kExecutable, kFirstWord };

sigset_t awaited_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGTERM);
  return set;
}

// Should that fail, descent and the job's mark hold it.
void enter_cgroup(const std::string& path) {
  if (path.empty()) return;
  const auto cgroup = JobCgroup::open(path);
  if (!cgroup) return;
  const UniqueFd leaf = cgroup->make_leaf(kLeaf);
  const UniqueFd procs(openat(leaf.get(), "cgroup.procs", O_WRONLY | O_CLOEXEC));
  [[maybe_unused]] const ssize_t n = write(procs.get(), "0", 1);
}

// In a session of its own: what it sends to its group does not reach the guard.
[[noreturn]] void become(char** argv, pid_t guard) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != guard) _exit(kCannotExecute);
  execv(argv[kExecutable], argv + kFirstWord);
  fprintf(stderr, "%s: %s\n", argv[kExecutable], strerror(errno));
  _exit(kCannotExecute);
}

class Ward {
 public:
  explicit Ward(pid_t program) : program_(program) {}

  // Until the program has ended or SIGTERM comes.
  void wait_for_end() {
    const sigset_t awaited = awaited_signals();
    while (!status_ && sigwaitinfo(&awaited, nullptr) != SIGTERM) reap();
  }

  // Everything that is left.
  void sweep() {
    Container all;
    all.root = getpid();
    Sweep sweep;
    const sigset_t awaited = awaited_signals();
    const Nanos deadline = boottime_now() + kSweepLimit;
    while (reap()) {
      const Nanos now = boottime_now();
      const Sweep::Step step = sweep.step(all, /*has_children=*/true, now);
      if (now >= deadline) return;
      const Nanos pause = std::max(step.next - now, Nanos(0));  // far below a second
      const timespec limit{0, static_cast<long>(pause.count())};
      sigtimedwait(&awaited, nullptr, &limit);
    }
  }

  // As its own end; not known of one that outlived SIGKILL.
  [[nodiscard]] std::optional<int> status() const { return status_; }

 private:
  // Whatever has ended; whether a child is left.
  bool reap() {
    int status = 0;
    pid_t pid = 0;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
      if (pid == program_) status_ = status;
    }
    return pid == 0;
  }

  const pid_t program_;
  std::optional<int> status_;
};

// Dies of the signal that the program died of, without a core of its own.
int end_as(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  sigset_t all;
  sigemptyset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  kill(getpid(), WTERMSIG(status));
  return kCannotExecute;  // not reached
}

}  // namespace

std::vector<std::string> guard_words(const Guarded& guarded, pid_t parent) {
  std::vector<std::string> words = {"hvd-agent", "guard", fmt::format_int(parent).str(),
                                    guarded.cgroup, guarded.executable};
  words.insert(words.end(), guarded.words.begin(), guarded.words.end());
  return words;
}

int run_guard(int argc, char** argv) {
  const auto parent = argc > kFirstWord ? parse_number<pid_t>(argv[kParent]) : std::nullopt;
  if (!parent) return kCannotExecute;
  const sigset_t awaited = awaited_signals();
  sigprocmask(SIG_BLOCK, &awaited, nullptr);
  prctl(PR_SET_NAME, "hvd-guard");
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != *parent) return kCannotExecute;
  enter_cgroup(argv[kCgroup]);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t self = getpid();
  const pid_t program = fork();
  if (program < 0) {
    fprintf(stderr, "%s: %s\n", argv[kExecutable], strerror(errno));
    return kCannotExecute;
  }
  if (program == 0) become(argv, self);
  Ward ward(program);
  ward.wait_for_end();
  ward.sweep();
  return ward.status() ? end_as(*ward.status()) : kCannotExecute;
}

}  // namespace hvd
