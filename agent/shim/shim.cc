#include "agent/shim/shim.h"

#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "agent/shim/folder_lock.h"
#include "base/log.h"

namespace hvd {
namespace {

using hvdrun::v1::FromShim;
using hvdrun::v1::ToShim;
using std::chrono::milliseconds;

constexpr std::uint64_t kDefaultLogWindow = std::uint64_t{4} << 20U;

}  // namespace

Shim::Job::Job(Poller& poller, const hvdrun::v1::ShimConfig& config, LogPump::Sink sink,
               CrewListener& listener)
    : pump(poller, config.log_window() > 0 ? config.log_window() : kDefaultLogWindow,
           std::move(sink)),
      crew(poller, pump, milliseconds(config.drain_ms()), listener),
      ladder(milliseconds(config.verify_ms()), boottime_now()) {}

Shim::Shim(UniqueFd socket) : socket_(std::move(socket)) {}

Shim::~Shim() {
  set_log_sink(nullptr);
  if (child_signals_.is_valid()) poller_.forget(child_signals_.get());
  if (cgroup_) poller_.forget(cgroup_->events());
}

Result<void> Shim::open() {
  if (auto opened = poller_.open(); !opened) return opened;
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  child_signals_.reset(signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!child_signals_.is_valid()) {
    return make_error("the shim cannot watch its children: {}", std::strerror(errno));
  }
  poller_.watch(child_signals_.get(), EPOLLIN, [this](std::uint32_t) { on_child_signal(); });
  link_.emplace(poller_, std::move(socket_),
                Link::Handlers{[this](const ToShim& message) { on_message(message); },
                               [this] { on_agent_gone(); }});
  set_log_sink([this](LogLevel, std::string_view text) { notice(std::string(text)); });
  return {};
}

void Shim::run() {
  while (!is_over_) {
    const Nanos wake = next_wake();
    const bool is_busy = wake <= boottime_now() || (job_ && job_->pump.is_busy());
    if (!is_busy) poller_.wake_at(wake);
    poller_.run_once(is_busy);
    if (job_) take_turn(boottime_now());
  }
}

// ---- the agent's side ----

void Shim::on_message(const ToShim& message) {
  if (message.has_config()) return configure(message.config());
  if (message.has_ping()) return pong(message.ping());
  if (!job_) return notice("a message before the job's config was ignored");
  switch (message.message_case()) {
    case ToShim::kSpawn:
      return spawn(message.spawn());
    case ToShim::kStop:
      log(LogLevel::kDebug, "asked to stop: {}", message.stop().reason());
      return stop(milliseconds(message.stop().grace_ms()), message.stop().signal());
    case ToShim::kSignal:
      return pass_signal(message.signal());
    case ToShim::kRenew:
      if (!is_lease_lost_) lease_.renew(boottime_now());
      touch_folder(job_dir_lock_.get());
      return;
    case ToShim::kLogAck:
      return job_->pump.acknowledge(message.log_ack().bytes());
    case ToShim::kPmi:
      return job_->crew.answer_pmi(message.pmi());
    case ToShim::kStdin:
      return take_input(message.stdin());
    default:
      return notice("a message of an unknown kind was ignored");
  }
}

void Shim::configure(const hvdrun::v1::ShimConfig& config) {
  if (job_) return notice("a second config was ignored");
  config_ = config;
  lease_ = Lease(milliseconds(config.lease_ms()), boottime_now());
  umask(static_cast<mode_t>(config.umask()));  // inherited by the workers
  allow_cores();
  const auto send_chunk = [this](hvdrun::v1::LogChunk chunk) {
    FromShim message;
    *message.mutable_log() = std::move(chunk);
    link_->send(message);
  };
  since_ = realtime_now();
  make_cgroup();
  CrewListener& listener = *this;
  job_ = std::make_unique<Job>(poller_, config, send_chunk, listener);
  FromShim message;
  message.mutable_ready()->set_pid(getpid());
  message.mutable_ready()->set_containment(
      cgroup_ ? fmt::format("{} {}", kByCgroup, cgroup_->path())
              : fmt::format("{} ({})", kByDescent, config_.no_cgroup()));
  link_->send(message);
}

void Shim::spawn(const hvdrun::v1::ShimSpawn& spawn) {
  if (has_spawned_ || is_stopping()) {
    return notice("workers were not started: the job has begun to stop, or has them already");
  }
  has_spawned_ = !spawn.more();
  if (!job_dir_lock_.is_valid()) job_dir_lock_ = lock_folder(config_.job_dir(), LOCK_SH);
  job_->crew.start(spawn, cgroup_ ? &*cgroup_ : nullptr);
  open_input();
}

void Shim::pong(const hvdrun::v1::ShimPing& ping) {
  FromShim message;
  message.mutable_pong()->set_id(ping.id());
  link_->send(message);
}

void Shim::notice(std::string text) {
  FromShim message;
  message.mutable_notice()->set_text(std::move(text));
  link_->send(message);
}

void Shim::pass_signal(const hvdrun::v1::ShimSignal& signal) {
  FromShim message;
  message.mutable_signalled()->set_id(signal.id());
  message.mutable_signalled()->set_signal(signal.signal());
  const int num_ranks = job_->crew.signal_leaders(signal.signal());
  message.mutable_signalled()->set_num_ranks(static_cast<std::uint32_t>(num_ranks));
  link_->send(message);
}

void Shim::open_input() {
  UniqueFd pipe = job_->crew.take_input();
  if (!pipe.is_valid()) return;
  input_.emplace(poller_, std::move(pipe), [this](std::uint64_t taken, bool is_closed) {
    FromShim message;
    message.mutable_input()->set_taken(taken);
    message.mutable_input()->set_is_closed(is_closed);
    link_->send(message);
  });
}

void Shim::take_input(const hvdrun::v1::ShimStdin& input) {
  if (!input_) return notice("no rank reads standard input; what came for it was dropped");
  if (!input.data().empty()) input_->push(input.data());
  if (input.eof()) input_->end();
}

// The workers inherit the soft limit; what is above the hard one is not to be had.
void Shim::allow_cores() const {
  rlimit limit{};
  if (getrlimit(RLIMIT_CORE, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(config_.core_limit(), limit.rlim_max);
  setrlimit(RLIMIT_CORE, &limit);
}

void Shim::on_agent_gone() {
  if (!job_) {
    is_over_ = true;
    return;
  }
  job_->pump.discard();
  stop(milliseconds(config_.grace_ms()), 0);
}

// ---- the workers' side ----

void Shim::on_child_signal() {
  std::array<signalfd_siginfo, 16> infos;
  while (read(child_signals_.get(), infos.data(), sizeof infos) > 0) {
  }
  if (!job_) return;
  job_->crew.reap();
  look_at_ = Nanos(0);
  sweep_at_ = Nanos(0);
}

void Shim::on_started(const Worker& worker) {
  FromShim message;
  message.mutable_started()->set_rank(worker.rank);
  message.mutable_started()->set_pid(worker.pid);
  link_->send(message);
}

void Shim::on_failed(const Worker& worker) {
  FromShim message;
  *message.mutable_exited() = report_failed_start(worker, is_stopping(), boottime_now());
  link_->send(message);
}

void Shim::on_ended(const Worker& worker, Ending ending) {
  ending.is_stopping = is_stopping();
  ending.was_swept = sweep_.has_killed(worker.pid);
  FromShim message;
  *message.mutable_exited() = report_ending(worker, ending, config_.job_dir());
  link_->send(message);
}

void Shim::on_pmi(std::uint32_t rank, std::string piece) {
  FromShim message;
  message.mutable_pmi()->set_rank(rank);
  message.mutable_pmi()->set_data(std::move(piece));
  link_->send(message);
}

// ---- the ladder ----

bool Shim::is_stopping() const { return job_->ladder.rung() != Rung::kRunning; }

void Shim::stop(Nanos grace, int signal) {
  const Nanos now = boottime_now();
  if (signal <= 0 || signal >= NSIG) signal = config_.stop_signal();
  if (first_signal_ == 0) first_signal_ = signal > 0 && signal < NSIG ? signal : SIGTERM;
  act(job_->ladder.stop(grace, now), now);
}

void Shim::act(LadderAction action, Nanos now) {
  switch (action) {
    case LadderAction::kNone:
    case LadderAction::kShorten:
      return;
    case LadderAction::kSignalGroups:
      return signal_groups();
    case LadderAction::kKillAll:
      sweep_at_ = Nanos(0);
      return;
    case LadderAction::kReportSurvivors:
      for (const ProcStat& process : find_all()) {
        *finished_.add_survivors() = describe_survivor(process);
      }
      job_->pump.end_all(now + milliseconds(config_.drain_ms()));
      break;
    case LadderAction::kReportClean:
      break;
  }
  // Even with an empty list: children are left that /proc hides from us (hidepid).
  finished_.set_clean(action == LadderAction::kReportClean);
  finished_.set_containment(cgroup_ ? kByCgroup : kByDescent);
  finished_.set_num_killed(sweep_.num_killed());
  release_cgroup();
  look_for_remains();
  done_at_ = now;
}

// The signal waits in a stopped process until it is continued.
void Shim::signal_groups() {
  const std::vector<ProcStat> members = find_members(container());
  job_->crew.note_stopped(members);
  job_->crew.signal_groups(first_signal_, members);
  job_->crew.signal_groups(SIGCONT, members);
}

void Shim::take_turn(Nanos now) {
  check_lease(now);
  climb(now);
  job_->pump.run(now);
  leave_when_done(now);
}

void Shim::check_lease(Nanos now) {
  if (is_lease_lost_ || !lease_.is_expired(now) || job_->ladder.rung() == Rung::kDone) return;
  is_lease_lost_ = true;
  notice(fmt::format("lease of {} passed without a heartbeat; stopping",
                     format_duration(lease_.length())));
  stop(milliseconds(config_.grace_ms()), 0);
}

void Shim::climb(Nanos now) {
  Ladder& ladder = job_->ladder;
  if (now >= ladder.deadline()) act(ladder.handle(LadderEvent::kDeadline, now), now);
  const bool is_alone = !job_->crew.has_living_leader();
  if (ladder.rung() == Rung::kRunning && has_spawned_ && is_alone) {
    act(ladder.handle(LadderEvent::kLeadersGone, now), now);
  }
  if (ladder.rung() == Rung::kWaiting && is_alone && now >= look_at_) look_for_groups(now);
  if (ladder.rung() == Rung::kKilling && now >= sweep_at_) sweep(now);
}

// A leader may die at the first signal while its children still write their checkpoint: they keep
// the grace. A daemon that got no signal is not waited for.
void Shim::look_for_groups(Nanos now) {
  look_at_ = now + kLookPause;
  if (Crew::has_children() && job_->crew.has_group_member(find_members(container()))) return;
  act(job_->ladder.handle(LadderEvent::kGroupsGone, now), now);
}

// Finished comes after the last log byte. An agent that takes nothing is waited for while its
// launcher renews the lease.
void Shim::leave_when_done(Nanos now) {
  if (job_->ladder.rung() != Rung::kDone) return;
  if (!has_reported_ && job_->pump.is_done()) {
    FromShim message;
    *message.mutable_finished() = finished_;
    link_->send(message);
    has_reported_ = true;
  }
  const bool is_heard = has_reported_ && link_->is_flushed();
  if (!link_->is_open() || is_heard || now >= give_up_at()) is_over_ = true;
}

Nanos Shim::give_up_at() const {
  const Nanos drained = done_at_ + milliseconds(config_.drain_ms());
  return is_lease_lost_ ? drained : std::max(drained, lease_.expires());
}

Nanos Shim::next_wake() const {
  if (!job_) return Nanos::max();
  Nanos next = std::min(job_->ladder.deadline(), job_->pump.next_deadline());
  switch (job_->ladder.rung()) {
    case Rung::kRunning:
      break;
    case Rung::kWaiting:
      if (!job_->crew.has_living_leader()) next = std::min(next, look_at_);
      break;
    case Rung::kKilling:
      next = std::min(next, sweep_at_);
      break;
    case Rung::kDone:
      return std::min(next, give_up_at());
  }
  return is_lease_lost_ ? next : std::min(next, lease_.expires());
}

}  // namespace hvd
