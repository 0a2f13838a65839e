#include "agent/job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "agent/arguments.h"
#include "agent/job_dir.h"
#include "agent/preflight.h"
#include "agent/shim/folder_lock.h"
#include "agent/shim/job_dir.h"
#include "agent/worker_binding.h"
#include "agent/worker_spec.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

constexpr auto kVerify = std::chrono::seconds(5);
constexpr auto kDrain = std::chrono::seconds(2);
constexpr auto kLeaveMargin = std::chrono::seconds(2);
// For the launcher's goodbye after its nodes have ended.
constexpr auto kByeMargin = std::chrono::seconds(5);
constexpr std::uint64_t kLogWindow = 1u << 20;
constexpr int kNumServers = 2;

std::optional<std::string> check_hello(const v1::Hello& hello) {
  if (!is_job_id(hello.job_id())) return "the job id must have 32 hexadecimal digits";
  if (hello.lease_ms() <= 0) return "the lease must be longer than nothing";
  if (hello.grace_ms() < 0) return "the grace must not be negative";
  return std::nullopt;
}

v1::ToShim shim_config(const v1::Hello& hello, const std::string& job_dir,
                       const CgroupPlace& cgroup) {
  v1::ToShim message;
  v1::ShimConfig* config = message.mutable_config();
  config->set_job_id(hello.job_id());
  config->set_node(hello.node());
  config->set_lease_ms(hello.lease_ms());
  config->set_grace_ms(hello.grace_ms());
  config->set_verify_ms(std::chrono::milliseconds(kVerify).count());
  config->set_drain_ms(std::chrono::milliseconds(kDrain).count());
  config->set_job_dir(job_dir);
  config->set_log_window(kLogWindow);
  config->set_umask(hello.umask());
  config->set_cgroup_parent(cgroup.parent);
  config->set_no_cgroup(cgroup.problem);
  config->set_stop_signal(hello.stop_signal());
  config->set_core_limit(hello.core_limit());
  return message;
}

v1::ControlReply notice(bool is_warning, std::string text) {
  v1::ControlReply reply;
  reply.mutable_notice()->set_warning(is_warning);
  reply.mutable_notice()->set_text(std::move(text));
  return reply;
}

}  // namespace

Job::Job(Loop& loop, ShimProcess shim, Config config)
    : loop_(loop),
      config_(std::move(config)),
      service_(loop, {[this](v1::ControlRequest&& request) { take_control(std::move(request)); },
                      [this] { take_stream_end(); },
                      [this](v1::OutputRequest&& request) { take_output_request(request); },
                      [this] { send_output(); },
                      [this](v1::StageRequest&& request) { take_stage(std::move(request)); }}),
      store_([this](v1::StoreRequest request) {
        v1::ControlReply reply;
        *reply.mutable_store_request() = std::move(request);
        service_.send(std::move(reply));
      }),
      rendezvous_(loop, store_,
                  {[this](const v1::WorkerBeat& beat, pid_t pid) { take_beat(beat, pid); },
                   [this](std::uint32_t rank) { beats_.forget(rank); }}),
      shim_(loop, std::move(shim),
            {[this](v1::FromShim&& message) { take_shim_message(std::move(message)); },
             [this] { end_shim_batch(); }, [this] { handle(JobEvent::kShimGone); },
             [this](const std::string& text) { take_log(LogLevel::kError, text); }}),
      master_port_(loop),
      horovod_(loop),
      gpu_memory_(loop),
      earlier_gpus_(loop),
      hang_up_(loop),
      lease_timer_(loop),
      leave_timer_(loop),
      stop_timer_(loop),
      beat_timer_(loop),
      vitals_timer_(loop),
      entered_(boottime_now()) {}

Result<void> Job::start(UniqueFd stream) {
  watch_hang_up(stream.get());
  lease_timer_.start(config_.hello_timeout, [this] {
    if (state_ != JobState::kNew) return;
    take_log(LogLevel::kError, "no launcher has said hello; leaving");
    handle(JobEvent::kStreamEnd);
  });
  return service_.start(std::move(stream));
}

// gRPC tells of a lost stream only through a call, and before the hello there is none. A second
// descriptor of the same socket reports its hang-up; it never reads.
void Job::watch_hang_up(int stream) {
  UniqueFd second(fcntl(stream, F_DUPFD_CLOEXEC, 0));
  if (!second.is_valid()) return;
  boost::system::error_code ignored;
  hang_up_.assign(second.release(), ignored);
  hang_up_.async_wait(boost::asio::posix::stream_descriptor::wait_error,
                      [this](const boost::system::error_code& error) {
                        if (!error) take_stream_end();
                      });
}

void Job::take_stream_end() { handle(JobEvent::kStreamEnd); }

void Job::stop(const std::string& reason) {
  if (!stopped_by_.empty()) return;
  stopped_by_ = reason;
  if (state_ == JobState::kNew) return take_stream_end();
  if (state_ == JobState::kReady) {
    service_.finish(ServiceEdge::Ending::kInternal, reason);
    return take_stream_end();
  }
  v1::Stop stop;
  stop.set_grace_ms(hello_.grace_ms());
  stop.set_reason(reason);
  if (state_ == JobState::kRunning) take_stop(stop);
  stop_timer_.start(stop_limit(), [this] { take_stream_end(); });
}

Nanos Job::stop_limit() const {
  return std::chrono::milliseconds(hello_.grace_ms()) + kVerify + kByeMargin;
}

void Job::take_log(LogLevel level, const std::string& text) {
  if (level > log_level_) return;
  if (is_hello_answered_ && service_.is_control_open()) {
    return service_.send(notice(level <= LogLevel::kWarning, text));
  }
  const std::string line = fmt::format("hvd-agent: {}\n", text);
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, line.data(), line.size());
}

void Job::handle(JobEvent event) {
  const JobStep step = job_step(state_, event);
  if (step.next != state_) {
    const Nanos now = boottime_now();
    log(LogLevel::kDebug, "job: {}: {} -> {} after {}", job_event_name(event),
        job_state_name(state_), job_state_name(step.next), format_duration(now - entered_));
    state_ = step.next;
    entered_ = now;
    if (*ending_ == '\0' && state_ >= JobState::kLeaving) ending_ = job_event_name(event);
  }
  run(step.action);
}

void Job::run(JobAction action) {
  switch (action) {
    case JobAction::kNone:
      return;
    case JobAction::kRefuse:
      return refuse("the request does not fit the job's state");
    case JobAction::kConfigure:
      return configure();
    case JobAction::kSpawn:
      return spawn();
    case JobAction::kStop:
      return stop_shim();
    case JobAction::kAwaitShim:
      return await_shim();
    case JobAction::kClose:
      return close();
    case JobAction::kReportLost:
      return report_lost();
  }
}

void Job::refuse(const std::string& text) {
  service_.finish(ServiceEdge::Ending::kRefused, text);
  handle(JobEvent::kStreamEnd);
}

void Job::configure() {
  if (const auto wrong = check_hello(request_.hello())) return refuse(*wrong);
  hello_ = std::move(*request_.mutable_hello());
  if (hello_.verbose()) log_level_ = LogLevel::kInfo;
  const auto runtime_dir = env_value(config_.node_env, "XDG_RUNTIME_DIR");
  auto path = plan_job_dir(job_dir_parents(runtime_dir, geteuid()), hello_.job_id(), hello_.node());
  if (!path) {
    const std::string other = make_other_parent(geteuid());
    if (!other.empty()) path = plan_job_dir({other}, hello_.job_id(), hello_.node());
  }
  if (!path) return refuse(path.error().message);
  job_dir_ = *path;
  shim_.send(shim_config(hello_, job_dir_, config_.cgroup));
  if (auto made = make_job_dir(job_dir_); !made) return refuse(made.error().message);
  job_dir_lock_ = lock_folder(job_dir_, LOCK_SH);
  if (auto listening = rendezvous_.start(rendezvous_path(job_dir_)); !listening) {
    return refuse(listening.error().message);
  }
  if (hello_.wants_stage()) {
    if (auto made = make_staged_dir(); !made) return refuse(made.error().message);
  }
  if (hello_.wants_timeline()) {
    if (auto made = make_timeline_dir(); !made) return refuse(made.error().message);
  }
  const Nanos lease = std::chrono::milliseconds(hello_.lease_ms());
  shim_.start_pings(lease);
  last_heartbeat_ = boottime_now();
  watch_lease();
  output_.emplace(Spool(job_dir_, hello_.spool_cap_bytes()), OutputQueue::Limits());
  output_->add_credit(std::exchange(early_credit_, 0));
  const EnvList env = base_env(config_.node_env, hello_);
  gpu_memory_.look_before(env);
  hello_reply_ = preflight(hello_, env);
  hello_reply_.set_job_dir(job_dir_);
  hello_reply_.set_timeline_dir(timeline_dir_);
  kernel_log_.emplace(kernel_log_path());
  hello_reply_.set_kernel_log_problem(kernel_log_->problem());
  if (hello_.has_fabric_listen()) {
    *hello_reply_.mutable_fabric_listen() =
        master_port_.open(hello_.fabric_listen(), hello_.job_id());
    open_horovod(hello_.fabric_listen(), hello_reply_.mutable_fabric_listen());
  }
}

void Job::spawn() {
  master_port_.end_check();
  if (request_.spawn().has_horovod_store()) serve_horovod(request_.spawn().horovod_store());
  start_vitals();
  if (request_.spawn().has_pmi()) {
    pmi_ = std::make_unique<PmiDesk>(request_.spawn(), hello_.job_id(), store_,
                                     [this](const v1::ToShim& message) { shim_.send(message); });
  }
  const SpawnContext context{config_.node_env, hello_, hello_reply_.executable(), job_dir_,
                             timeline_dir_};
  std::vector<v1::ShimSpawn> parts = make_shim_spawns(context, request_.spawn());
  if (!request_.spawn().bind().empty() || request_.spawn().tell_bindings()) {
    bindings_ = bind_workers(parts, parse_bind_mode(request_.spawn().bind()), read_topology());
  }
  for (v1::ShimSpawn& part : parts) {
    v1::ToShim message;
    *message.mutable_spawn() = std::move(part);
    if (shim_.send(message)) continue;
    return refuse(
        fmt::format("environment and command of one worker take {} bytes, too much to "
                    "start",
                    message.ByteSizeLong()));
  }
}

// The lease is looked at when it would be over; each heartbeat in between only notes its time.
void Job::watch_lease() {
  const Nanos lease = std::chrono::milliseconds(hello_.lease_ms());
  const Nanos left = last_heartbeat_ + lease - boottime_now();
  if (left <= Nanos(0)) {
    take_log(LogLevel::kWarning, fmt::format("no heartbeat of the launcher for {}; leaving",
                                             format_duration(boottime_now() - last_heartbeat_)));
    return handle(JobEvent::kLeaseOver);
  }
  lease_timer_.start(left, [this] { watch_lease(); });
}

void Job::stop_shim() {
  if (job_dir_.empty()) {
    shim_.close();
  } else {
    v1::ToShim message;
    message.mutable_stop()->set_grace_ms(hello_.grace_ms());
    message.mutable_stop()->set_reason("the launcher has gone");
    shim_.send(message);
  }
  await_shim();
}

void Job::await_shim() {
  store_.end_all("the job is ending");
  const Nanos limit = std::chrono::milliseconds(hello_.grace_ms()) + kVerify + kLeaveMargin;
  leave_timer_.start(limit, [this] { handle(JobEvent::kLeaveDeadline); });
}

// What runs beside the job ends with it, and so does a shim that has not left by itself.
void Job::let_go() {
  evidence_.reset();
  gpus_.reset();
  horovod_.close();
  shim_.leave();
  boost::system::error_code ignored;
  hang_up_.close(ignored);
}

void Job::report_lost() {
  let_go();
  store_.end_all("the job is ending");
  const std::string cause =
      fmt::format("hvd-shim died (pid {}, {})", shim_.pid(), shim_.end_text());
  for (const auto& [rank, pid] : running_) {
    service_.send(
        notice(true, fmt::format("{}: rank {} (pid {}) was killed with it", cause, rank, pid)));
  }
  sweep_leftovers([this, cause](const std::vector<ProcStat>& survivors) {
    for (const ProcStat& process : survivors) {
      service_.send(notice(
          true, fmt::format("process {} ({}, uid {}, state {}) of the job is still there",
                            process.pid, process.comm, user_of(process.pid), process.state)));
    }
    service_.finish(ServiceEdge::Ending::kInternal, cause);
    shut_down();
  });
}

void Job::close() {
  let_go();
  if (is_finished_seen_ && config_.on_ranks_gone) config_.on_ranks_gone();
  service_.finish(ServiceEdge::Ending::kDone, "");
  if (is_finished_seen_ || job_dir_.empty()) return shut_down();
  // The shim left without its last word, or not at all: what it leaves is ours to end.
  sweep_leftovers([this](const std::vector<ProcStat>&) { shut_down(); });
}

void Job::sweep_leftovers(Leftovers::Done done) {
  std::vector<JobCgroup> cgroups;
  const std::string name = job_cgroup_name(hello_.job_id(), hello_.node());
  auto cgroup = JobCgroup::open(config_.cgroup.parent + "/" + name);
  if (cgroup) cgroups.push_back(std::move(*cgroup));
  leftovers_.emplace(loop_, container_of_agent(hello_.job_id(), hello_.node()), std::move(cgroups));
  leftovers_->sweep(kVerify, std::move(done));
}

void Job::shut_down() {
  if (!job_dir_.empty()) remove_job_dir(job_dir_);
  leave_timeline();
  const auto one_down = [this] {
    if (++num_servers_down_ == kNumServers) config_.on_end();
  };
  service_.shutdown(one_down);
  rendezvous_.shutdown(one_down);
}

}  // namespace hvd
