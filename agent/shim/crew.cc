#include "agent/shim/crew.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string>
#include <utility>

#include "agent/shim/spawn.h"
#include "base/process_state.h"
#include "base/sys.h"

namespace hvd {
namespace {

// A job that forks without end must not fill our memory.
constexpr std::size_t kMaxReaped = 65536;

std::string find_error_file(const hvdrun::v1::WorkerSpec& spec) {
  for (const auto& variable : spec.env()) {
    if (variable.name() == "TORCHELASTIC_ERROR_FILE") return variable.value();
  }
  return {};
}

}  // namespace

Crew::Crew(Poller& poller, LogPump& pump, Nanos drain, CrewListener& listener)
    : poller_(poller),
      pump_(pump),
      drain_(drain),
      listener_(listener),
      pmi_(poller, [this](std::uint32_t rank,
                          std::string piece) { listener_.on_pmi(rank, std::move(piece)); }),
      dev_null_(open("/dev/null", O_RDONLY | O_CLOEXEC)) {}

Crew::~Crew() {
  for (const Worker& worker : workers_) {
    if (worker.pidfd.is_valid()) poller_.forget(worker.pidfd.get());
    if (worker.status.is_valid()) poller_.forget(worker.status.get());
  }
}

void Crew::start(const hvdrun::v1::ShimSpawn& spawn, const JobCgroup* cgroup) {
  const int pipe_bytes = choose_pipe_bytes(spawn.workers_size());
  for (const hvdrun::v1::WorkerSpec& spec : spawn.workers()) {
    UniqueFd leaf;
    if (cgroup != nullptr) leaf = cgroup->make_leaf(fmt::format("rank{}", spec.rank()));
    start_one(workers_.emplace_back(spec.rank(), find_error_file(spec), boottime_now()), spec,
              pipe_bytes, leaf.get());
  }
}

void Crew::start_one(Worker& worker, const hvdrun::v1::WorkerSpec& spec, int pipe_bytes,
                     int cgroup) {
  const auto started = start_worker(worker, spec, dev_null_.get(), pipe_bytes, cgroup);
  if (!started) {
    worker.failure = started.error();
    worker.handle(WorkerEvent::kCloneFailed, boottime_now());
    return fail(worker);
  }
  worker.handle(WorkerEvent::kCloned, boottime_now());
  ++num_alive_;
  by_pid_[worker.pid] = &worker;
  poller_.watch(worker.status.get(), EPOLLIN,
                [this, &worker](std::uint32_t) { follow_set_up(worker); });
  if (worker.pidfd.is_valid()) {  // else SIGCHLD alone tells of its end
    poller_.watch(worker.pidfd.get(), EPOLLIN,
                  [this, &worker](std::uint32_t) { reap_leader(worker); });
  }
}

void Crew::follow_set_up(Worker& worker) {
  if (worker.state() != WorkerState::kStarting) return;
  const SetUp set_up = read_set_up(worker.status.get(), worker.failure);
  if (set_up == SetUp::kUnderWay) return;
  poller_.forget(worker.status.get());
  worker.status.reset();
  if (set_up == SetUp::kFailed) return worker.handle(WorkerEvent::kSetUpFailed, boottime_now());
  worker.handle(WorkerEvent::kExecuted, boottime_now());
  worker.memory = OomCounter::of(worker.pid, cgroup_mount_);
  listener_.on_started(worker);
  release_pipes(worker);
}

// The pump gets the pipes only now, so that nobody hears of a worker's output before its start.
void Crew::release_pipes(Worker& worker) {
  pump_.add(worker.rank, hvdrun::v1::STREAM_STDOUT, std::move(worker.out));
  pump_.add(worker.rank, hvdrun::v1::STREAM_STDERR, std::move(worker.err));
  if (worker.pmi.is_valid()) pmi_.add(worker.rank, std::move(worker.pmi));
}

void Crew::fail(Worker& worker) {
  listener_.on_failed(worker);
  worker.out.reset();
  worker.err.reset();
  worker.pmi.reset();
  pump_.add_ended(worker.rank, hvdrun::v1::STREAM_STDOUT);
  pump_.add_ended(worker.rank, hvdrun::v1::STREAM_STDERR);
}

void Crew::reap_leader(Worker& worker) {
  if (!worker.is_alive()) return;
  follow_set_up(worker);  // the end of a very short worker may be seen before its start
  Ending ending;
  const int kind = worker.pidfd.is_valid() ? sys::kWaitPidfd : P_PID;
  const int id = worker.pidfd.is_valid() ? worker.pidfd.get() : worker.pid;
  const int rc = sys::wait_id(kind, id, &ending.info, WEXITED | WNOHANG, &ending.usage);
  if (rc != 0 || ending.info.si_pid == 0) return;
  ending.time = boottime_now();
  const bool is_killed = ending.info.si_code != CLD_EXITED && ending.info.si_status == SIGKILL;
  if (is_killed) ending.oom = worker.memory.facts(is_alone_in_group(worker));
  --num_alive_;
  if (worker.pidfd.is_valid()) poller_.forget(worker.pidfd.get());
  worker.pidfd.reset();
  worker.handle(WorkerEvent::kReaped, ending.time);
  if (worker.state() == WorkerState::kFailed) return fail(worker);
  pmi_.end_rank(worker.rank);
  listener_.on_ended(worker, ending);
  if (worker.out.is_valid()) release_pipes(worker);  // killed before its exec
  pump_.end_rank(worker.rank, ending.time + drain_);
}

void Crew::reap() {
  while (true) {
    // Looked at first: a leader must be reaped where its end is reported.
    siginfo_t info{};
    if (sys::wait_id(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL, nullptr) != 0) return;
    if (info.si_pid == 0) return;
    const auto found = by_pid_.find(info.si_pid);
    if (found != by_pid_.end() && found->second->is_alive()) {
      reap_leader(*found->second);
      if (found->second->is_alive()) return;
      continue;
    }
    siginfo_t reaped{};
    sys::wait_id(P_PID, info.si_pid, &reaped, WEXITED | WNOHANG | __WALL, nullptr);
    if (reaped_.size() < kMaxReaped) reaped_.insert(info.si_pid);
  }
}

bool Crew::has_children() {
  siginfo_t info{};
  return sys::wait_id(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL, nullptr) == 0 ||
         errno != ECHILD;
}

std::set<pid_t> Crew::held_sessions() const {
  std::set<pid_t> sessions;
  for (const Worker& worker : workers_) {
    if (worker.is_alive()) sessions.insert(worker.pid);
  }
  return sessions;
}

DeadProcesses Crew::dead() const {
  DeadProcesses dead{{}, reaped_};
  for (const auto& [pid, worker] : by_pid_) {
    if (!worker->is_alive()) dead.workers.insert(pid);
  }
  return dead;
}

int Crew::signal_leaders(int signal) {
  int num_reached = 0;
  for (Worker& worker : workers_) {
    if (!worker.is_alive()) continue;
    worker.note_sent(signal);
    const int rc = worker.pidfd.is_valid() ? sys::pidfd_send_signal(worker.pidfd.get(), signal)
                                           : kill(worker.pid, signal);
    num_reached += rc == 0 ? 1 : 0;
  }
  return num_reached;
}

UniqueFd Crew::take_input() {
  for (Worker& worker : workers_) {
    if (worker.in.is_valid()) return std::move(worker.in);
  }
  return {};
}

void Crew::answer_pmi(const hvdrun::v1::ShimPmi& answer) {
  if (!answer.kill()) return pmi_.answer(answer.rank(), answer.data(), answer.close());
  for (const Worker& worker : workers_) {
    if (worker.rank == answer.rank() && worker.is_alive()) kill(-worker.pid, SIGKILL);
  }
}

bool Crew::is_alone_in_group(const Worker& worker) const {
  return std::none_of(workers_.begin(), workers_.end(), [&worker](const Worker& other) {
    return &other != &worker && other.memory.group() == worker.memory.group();
  });
}

void Crew::note_stopped(const std::vector<ProcStat>& members) {
  for (const ProcStat& member : members) {
    const auto found = by_pid_.find(member.pid);
    if (found == by_pid_.end() || !found->second->is_alive()) continue;
    found->second->stood_still = is_stopped_state(member.state);
  }
}

void Crew::signal_groups(int signal, const std::vector<ProcStat>& members) {
  for (Worker& worker : workers_) {
    if (!worker.is_alive()) continue;
    worker.note_sent(signal);
    // A child that has not yet made its session has no group; all its signals are still blocked, so
    // what is sent to it now comes through right before its exec.
    if (kill(-worker.pid, signal) != 0 && errno == ESRCH) kill(worker.pid, signal);
  }
  for (const ProcStat& member : members) {
    const auto found = by_pid_.find(member.pgrp);
    if (found != by_pid_.end() && !found->second->is_alive()) signal_process(member, signal);
  }
}

bool Crew::has_group_member(const std::vector<ProcStat>& members) const {
  for (const ProcStat& member : members) {
    if (by_pid_.contains(member.pgrp)) return true;
  }
  return false;
}

}  // namespace hvd
