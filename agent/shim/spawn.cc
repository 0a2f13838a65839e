#include "agent/shim/spawn.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <csignal>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/sys.h"
#include "base/unique_fd.h"

namespace hvd {
namespace {

using hvdrun::v1::SpawnStage;

constexpr int kLargestPipe = 1 << 20;
constexpr int kSmallestPipe = 1 << 16;
constexpr int kAllPipes = 32 << 20;

// Everything that the child needs, made before the clone: it may not allocate.
struct ExecPlan {
  explicit ExecPlan(const hvdrun::v1::WorkerSpec& spec);

  std::vector<std::string> strings;
  std::vector<char*> argv;
  std::vector<char*> envp;
  const char* executable;
  const char* cwd;
  pid_t parent = getpid();
  int in = -1;
  int out = -1;
  int err = -1;
  int status = -1;
  rlim_t nofile;
  bool no_core;
  std::vector<unsigned long> cpus;         // as bits; empty: not bound
  std::vector<unsigned long> memory_node;  // the same of NUMA nodes
  int pmi = -1;
  UniqueFd cgroup_procs;  // where the kernel did not start the child in its cgroup
};

constexpr unsigned kWordBits = std::numeric_limits<unsigned long>::digits;

void set_bit(std::vector<unsigned long>& bits, unsigned bit) {
  if (bits.size() <= bit / kWordBits) bits.resize(bit / kWordBits + 1);
  bits[bit / kWordBits] |= 1UL << (bit % kWordBits);
}

ExecPlan::ExecPlan(const hvdrun::v1::WorkerSpec& spec)
    : executable(spec.executable().c_str()),
      cwd(spec.cwd().c_str()),
      nofile(spec.nofile_limit() == 0 ? RLIM_INFINITY : spec.nofile_limit()),
      no_core(spec.no_core()) {
  strings.reserve(spec.argv_size() + spec.env_size());  // pointers into it must hold
  for (const std::string& argument : spec.argv()) {
    argv.push_back(strings.emplace_back(argument).data());
  }
  for (const auto& variable : spec.env()) {
    envp.push_back(strings.emplace_back(variable.name() + "=" + variable.value()).data());
  }
  for (const std::uint32_t cpu : spec.cpus()) set_bit(cpus, cpu);
  if (spec.memory_node() > 0) set_bit(memory_node, spec.memory_node() - 1);
  argv.push_back(nullptr);
  envp.push_back(nullptr);
}

// ---- between clone and exec: async-signal-safe calls only ----

[[noreturn]] void give_up(const ExecPlan& plan, SpawnStage stage) {
  const int report[2] = {stage, errno};
  [[maybe_unused]] const ssize_t n = write(plan.status, report, sizeof report);
  _exit(errno == ENOENT ? 127 : 126);
}

// nohup, shells and Python leave signals ignored; a worker starts with none of that.
void reset_signals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &action, nullptr);
}

// As much of `wanted` as the hard limit allows.
void set_soft_limit(decltype(RLIMIT_NOFILE) resource, rlim_t wanted) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  setrlimit(resource, &limit);
}

// The shim has raised its own limit of descriptors, and a worker that calls select() must not get
// more of them than its user has.
void set_limits(const ExecPlan& plan) {
  set_soft_limit(RLIMIT_NOFILE, plan.nofile);
  if (plan.no_core) set_soft_limit(RLIMIT_CORE, 0);
  // Pinned memory for RDMA and NCCL; granted to root, else as much as the hard limit allows.
  constexpr rlimit kUnlimited = {RLIM_INFINITY, RLIM_INFINITY};
  if (setrlimit(RLIMIT_MEMLOCK, &kUnlimited) != 0) {
    set_soft_limit(RLIMIT_MEMLOCK, RLIM_INFINITY);
  }
}

// The memory is only a preference, and some containers forbid to have one.
bool bind_to_cpus(const ExecPlan& plan) {
  constexpr int kPreferred = 1;  // MPOL_PREFERRED
  if (!plan.memory_node.empty()) {
    syscall(SYS_set_mempolicy, kPreferred, plan.memory_node.data(),
            plan.memory_node.size() * kWordBits + 1);
  }
  if (plan.cpus.empty()) return true;
  return syscall(SYS_sched_setaffinity, 0, plan.cpus.size() * sizeof(unsigned long),
                 plan.cpus.data()) == 0;
}

bool connect_stdio(const ExecPlan& plan) {
  if (dup2(plan.in, STDIN_FILENO) < 0 || dup2(plan.out, STDOUT_FILENO) < 0 ||
      dup2(plan.err, STDERR_FILENO) < 0) {
    return false;
  }
  // All that the shim opens is close-on-exec already; this is for what a library may have opened,
  // and absent from kernels before 5.11.
  sys::mark_close_on_exec_from(3);
  return true;
}

// The number is the shim's own or a pipe's until then: only the status pipe is needed any more.
bool connect_pmi(ExecPlan& plan) {
  if (plan.pmi < 0) return true;
  if (plan.pmi == kPmiDescriptor) return fcntl(plan.pmi, F_SETFD, 0) == 0;
  if (plan.status == kPmiDescriptor) {
    const int moved = fcntl(plan.status, F_DUPFD_CLOEXEC, kPmiDescriptor + 1);
    if (moved < 0) return false;
    plan.status = moved;
  }
  return dup2(plan.pmi, kPmiDescriptor) >= 0;
}

[[noreturn]] void run_child(ExecPlan& plan) {
  // Should that fail, too, it is held by descent and mark like any other process of the job.
  if (plan.cgroup_procs.is_valid()) {
    [[maybe_unused]] const ssize_t n = write(plan.cgroup_procs.get(), "0", 1);
  }
  reset_signals();
  if (setsid() < 0) give_up(plan, hvdrun::v1::SPAWN_STAGE_SESSION);
  if (!connect_stdio(plan) || !connect_pmi(plan)) give_up(plan, hvdrun::v1::SPAWN_STAGE_STDIO);
  set_limits(plan);
  if (!bind_to_cpus(plan)) give_up(plan, hvdrun::v1::SPAWN_STAGE_LIMITS);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up(plan, hvdrun::v1::SPAWN_STAGE_PDEATHSIG);
  // The shim may have died before the prctl; a sub-reaper above it would be our parent then, not 1.
  if (getppid() != plan.parent) _exit(126);
  if (*plan.cwd != '\0' && chdir(plan.cwd) != 0) give_up(plan, hvdrun::v1::SPAWN_STAGE_CHDIR);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(plan.executable, plan.argv.data(), plan.envp.data());
  give_up(plan, hvdrun::v1::SPAWN_STAGE_EXEC);
}

// ---- the shim's side ----

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

// The read end is non-blocking; the write end, the worker's, is not.
bool make_pipe(Pipe& made, int bytes) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  made.read_end.reset(ends[0]);
  made.write_end.reset(ends[1]);
  if (bytes > kSmallestPipe) fcntl(ends[0], F_SETPIPE_SZ, bytes);
  return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

// The other way round: here the worker reads.
bool make_input_pipe(Pipe& made) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  made.read_end.reset(ends[0]);
  made.write_end.reset(ends[1]);
  return fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0;
}

// Both ends are close-on-exec; ours, the read end, is non-blocking.
bool make_pmi_socket(Pipe& made) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
  made.read_end.reset(ends[0]);
  made.write_end.reset(ends[1]);
  return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

}  // namespace

void occupy_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    const int opened = open("/dev/null", O_RDWR);
    if (opened < 0) return;
    if (opened == fd) continue;
    // Not held open any longer: whoever waits for the end of our output must not wait for the job.
    dup2(opened, fd);
    close(opened);
  }
}

int choose_pipe_bytes(int num_workers) {
  const int share = kAllPipes / (2 * std::max(num_workers, 1));
  return std::clamp(static_cast<int>(std::bit_floor(static_cast<unsigned>(share))), kSmallestPipe,
                    kLargestPipe);
}

tl::expected<void, SpawnFailure> start_worker(Worker& worker, const hvdrun::v1::WorkerSpec& spec,
                                              int dev_null, int pipe_bytes, int cgroup) {
  Pipe out;
  Pipe err;
  Pipe status;
  Pipe in;
  if (spec.has_input() && !make_input_pipe(in)) {
    return tl::unexpected(SpawnFailure{hvdrun::v1::SPAWN_STAGE_PIPE, errno});
  }
  Pipe pmi;
  if (spec.has_pmi() && !make_pmi_socket(pmi)) {
    return tl::unexpected(SpawnFailure{hvdrun::v1::SPAWN_STAGE_PIPE, errno});
  }
  if (!make_pipe(out, pipe_bytes) || !make_pipe(err, pipe_bytes) || !make_pipe(status, 0)) {
    return tl::unexpected(SpawnFailure{hvdrun::v1::SPAWN_STAGE_PIPE, errno});
  }
  ExecPlan plan(spec);
  plan.in = spec.has_input() ? in.read_end.get() : dev_null;
  plan.out = out.write_end.get();
  plan.err = err.write_end.get();
  plan.status = status.write_end.get();
  plan.pmi = pmi.write_end.get();
  int pidfd = -1;
  pid_t pid = sys::fork_with_pidfd(&pidfd, cgroup);
  if (pid < 0 && cgroup >= 0) {
    plan.cgroup_procs.reset(openat(cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC));
    pid = sys::fork_with_pidfd(&pidfd);
  }
  if (pid < 0) return tl::unexpected(SpawnFailure{hvdrun::v1::SPAWN_STAGE_CLONE, errno});
  if (pid == 0) run_child(plan);
  worker.pid = pid;
  worker.pidfd.reset(pidfd);
  worker.status = std::move(status.read_end);
  worker.out = std::move(out.read_end);
  worker.err = std::move(err.read_end);
  worker.in = std::move(in.write_end);
  worker.pmi = std::move(pmi.read_end);
  return {};
}

SetUp read_set_up(int status_fd, SpawnFailure& failure) {
  int report[2];
  const ssize_t n = read(status_fd, report, sizeof report);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return SetUp::kUnderWay;
  if (n != sizeof report) return SetUp::kExecuted;
  failure.stage = static_cast<SpawnStage>(report[0]);
  failure.errno_value = report[1];
  return SetUp::kFailed;
}

}  // namespace hvd
