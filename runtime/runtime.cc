#include "hvdrun/runtime.h"

#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/host_name.h"
#include "base/log.h"
#include "base/process_needs.h"
#include "runtime/activity_board.h"
#include "runtime/failure_path.h"
#include "runtime/flight_recorder.h"
#include "runtime/gpu_connect.h"
#include "runtime/horovod_variables.h"
#include "runtime/launch_place.h"
#include "runtime/nccl_variables.h"
#include "runtime/rank_connect.h"
#include "runtime/recorded_communicator.h"
#include "runtime/timeline_environment.h"
#include "runtime/worker_exit.h"
#include "runtime/worker_facts.h"
#include "runtime/worker_monitor.h"
#include "runtime/worker_rendezvous.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// What has a limit of its own and keeps to it is not cut short by the one behind it.
constexpr milliseconds kGuardDelay{5'000};

milliseconds left_until(SteadyTime deadline) {
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
  return std::max(left, milliseconds(1));
}

// The code of a worker for an error that has none of a worker yet.
tl::unexpected<Error> start_error(Error error, WorkerExit otherwise) {
  if (error.code != ExitCode::kInfrastructure) return tl::unexpected(std::move(error));
  return with_exit(std::move(error), error.may_retry ? WorkerExit::kPeerLost : otherwise);
}

// A path or a number of the user's.
tl::unexpected<Error> user_error(Error error) {
  error.code = ExitCode::kUsage;
  return tl::unexpected(std::move(error));
}

Result<void> apply_log_level(const EnvList& environment) {
  const auto level = horovod_log_level(environment);
  if (!level) return tl::unexpected(level.error());
  if (*level) set_log_level(**level);
  return {};
}

// A second job of one process would meet the first one's marks, in its launcher and elsewhere.
std::atomic<bool> has_been_rank = false;

Result<void> claim_process() {
  if (!has_been_rank.exchange(true)) return {};
  return make_error(ExitCode::kUsage,
                    "this process is, or was, a rank already: a process is one once, so keep the "
                    "first job, or start another process");
}

// Before the first call of NCCL, and before threads that might read the environment.
void prepare_nccl(const EnvList& environment, int rank) {
  for (const auto& [name, value] : nccl_defaults(environment, rank)) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  if (rank != 0) return;
  for (const std::string& warning : nccl_variable_warnings(environment)) {
    log(LogLevel::kWarning, "{}", warning);
  }
}

// Once for the job.
void warn_of_variables(const EnvList& environment, int rank) {
  const auto idle = variables_without_effect(environment);
  if (rank == 0 && idle) log(LogLevel::kWarning, "{}", *idle);
}

// NCCL's own failures may come from too few descriptors.
Error gpu_error(const CommunicatorFailure& failure, const DescriptorLimits& limits) {
  Error error = worker_error(exit_of(failure.kind), "{}", failure.message).value();
  if (failure.kind == CommunicatorFailure::Kind::kInternal) {
    error.message += fmt::format(" ({})", describe(limits));
  }
  return error;
}

}  // namespace

Result<Place> place_of_this_process() {
  auto launch = launch_place(split_environ(environ), host_name());
  if (!launch) return tl::unexpected(launch.error());
  return std::move(launch->place);
}

bool may_share_gpus() { return allows_shared_gpu(split_environ(environ)); }

struct Runtime::Impl {
  Impl(InitOptions init_options, EnvList variables, LaunchPlace launched, milliseconds abort_limit)
      : options(std::move(init_options)),
        environment(std::move(variables)),
        launch(std::move(launched)),
        place(launch.place),
        failures({.who = fmt::format("rank {} on {}", launch.place.rank, launch.place.host),
                  .limit = abort_limit,
                  .record = [this](const Error&) { dump(); },
                  .leave = [](int code) { _exit(code); }}) {}

  // Whoever could report comes to rest first; a failure that is on its way has its end here.
  ~Impl() {
    failures.close();
    monitor.reset();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Result<void> start();
  Result<void> open_timeline();
  Result<void> meet(SteadyTime deadline);
  Result<void> connect(SteadyTime deadline);
  Result<void> start_monitor();
  Result<void> finalize(SteadyTime deadline);
  void enter(const char* phase) {
    board.update([&](Activity& activity) { activity.phase = phase; });
  }
  void guard(SteadyTime deadline, const char* what);
  void dump();

  const InitOptions options;
  const EnvList environment;
  const LaunchPlace launch;  // read by all threads
  Place place;               // complete once all are connected
  DescriptorLimits limits;
  ActivityBoard board;
  FlightRecorder recorder;
  std::unique_ptr<Timeline> timeline;
  FailurePath failures;
  std::unique_ptr<WorkerRendezvous> rendezvous;
  std::unique_ptr<Communicator> cpu;
  std::unique_ptr<Communicator> cuda;
  int num_gpu_communicators = 0;
  std::unique_ptr<WorkerMonitor> monitor;
};

// If `what` hangs in a call that has no limit.
void Runtime::Impl::guard(SteadyTime deadline, const char* what) {
  failures.arm(deadline + kGuardDelay,
               worker_error(WorkerExit::kDeadline, "{} did not end in time", what).value());
}

// For a person to read after a failure: a file where there is a place for it, else one line.
void Runtime::Impl::dump() {
  if (timeline) timeline->flush();
  const Activity activity = board.read();
  if (activity.scheduled == 0) return;
  log(LogLevel::kWarning, "rank {} was {}{}; collectives: {} handed over, {} complete{}",
      launch.place.rank, activity.phase,
      activity.step > 0 ? fmt::format(" in step {}", activity.step) : "", activity.scheduled,
      activity.completed,
      activity.waiting_for.empty() ? "" : ", in flight: " + activity.waiting_for);
  const std::string path = dump_path(environment, launch.place);
  if (path.empty()) return;
  std::ofstream file(path);
  file << recorder.json(
      {launch.place.rank, launch.place.size, launch.generation, launch.place.host});
  file.close();
  if (file) return log(LogLevel::kWarning, "rank {}: dump in {}", launch.place.rank, path);
  log(LogLevel::kWarning, "rank {}: the dump cannot be written to {}", launch.place.rank, path);
}

Result<void> Runtime::Impl::start() {
  const SteadyTime deadline = steady_clock::now() + options.start_timeout;
  guard(deadline, "the start of the job");
  auto done = open_timeline();
  if (done) done = meet(deadline);
  if (done) done = connect(deadline);
  failures.disarm();
  return done;
}

Result<void> Runtime::Impl::open_timeline() {
  auto wanted = timeline_from_environment(launch.place.rank, launch.place.host);
  if (!wanted) return user_error(wanted.error());
  if (!*wanted) return {};
  auto opened = Timeline::open(std::move(**wanted));
  if (!opened) return user_error(opened.error());
  timeline = std::move(*opened);
  return {};
}

Result<void> Runtime::Impl::meet(SteadyTime deadline) {
  lift_descriptor_limit();  // NCCL holds several sockets for each peer
  limits = descriptor_limits();
  auto facts = worker_facts(launch.place, launch.generation, options, environment, limits);
  if (options.device >= 0) {
    const auto added = add_gpu_facts(options.device, facts);
    if (!added) return start_error(added.error(), WorkerExit::kInternal);
  }
  auto opened = open_rendezvous(launch, left_until(deadline));
  if (!opened) return start_error(opened.error(), WorkerExit::kInternal);
  rendezvous = std::move(*opened);
  const auto registered = rendezvous->register_worker(facts, left_until(deadline));
  if (!registered) return start_error(registered.error(), WorkerExit::kInternal);
  enter("connecting");  // what the first heartbeat says
  return start_monitor();
}

Result<void> Runtime::Impl::start_monitor() {
  if (launch.way != MeetingWay::kAgent) return {};
  WorkerMonitor::Settings settings;
  settings.socket_path = launch.where;
  settings.rank = launch.place.rank;
  settings.size = launch.place.size;
  settings.generation = launch.generation;
  auto started = WorkerMonitor::start(
      std::move(settings), board,
      [this](const std::string& reason) {
        failures.report(worker_error(WorkerExit::kPeerLost, "leaves: {}", reason).value());
      },
      [this](const std::string& reason) {
        log(LogLevel::kWarning, "rank {} is asked what it does: {}", launch.place.rank, reason);
        dump();
      });
  if (!started) return start_error(started.error(), WorkerExit::kInternal);
  monitor = std::move(*started);
  return {};
}

Result<void> Runtime::Impl::connect(SteadyTime deadline) {
  auto connected = connect_ranks(*rendezvous, launch, left_until(deadline));
  if (!connected) return start_error(connected.error(), WorkerExit::kPeerLost);
  cpu = std::move(*connected);
  if (options.records_collectives) {
    cpu = std::make_unique<RecordedCommunicator>(std::move(cpu), recorder, board);
  }
  failures.add(cpu.get());
  enter("verifying");
  auto complete = gather_place(*cpu, launch, left_until(deadline));
  if (!complete) return tl::unexpected(complete.error());
  place = std::move(*complete);
  enter("running");
  return {};
}

Result<void> Runtime::Impl::finalize(SteadyTime deadline) {
  enter("finalizing");
  guard(deadline, "the end of the job");
  for (Communicator* const communicator : {cuda.get(), cpu.get()}) {
    if (communicator == nullptr) continue;
    const auto done = communicator->finalize({left_until(deadline), nullptr});
    if (!done) return collective_error(*communicator, done.error());
  }
  monitor.reset();
  failures.close();
  if (timeline) timeline->flush();
  rendezvous->clean_up();
  return {};
}

Runtime::Runtime(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Runtime::~Runtime() = default;

Result<std::unique_ptr<Runtime>> Runtime::init(const InitOptions& options) {
  const EnvList environment = split_environ(environ);
  const auto level = apply_log_level(environment);
  if (!level) return tl::unexpected(level.error());
  auto launch = launch_place(environment, host_name());
  if (!launch) return tl::unexpected(launch.error());
  const auto abort_limit = abort_timeout(environment);
  if (!abort_limit) return tl::unexpected(abort_limit.error());
  const auto claimed = claim_process();
  if (!claimed) return tl::unexpected(claimed.error());
  warn_of_variables(environment, launch->place.rank);
  if (options.device >= 0) prepare_nccl(environment, launch->place.rank);
  auto impl = std::make_unique<Impl>(options, environment, std::move(*launch), *abort_limit);
  const auto started = impl->start();
  if (!started) {
    // Nothing was started by it.
    if (started.error().code == ExitCode::kUsage) has_been_rank = false;
    return tl::unexpected(started.error());
  }
  return std::unique_ptr<Runtime>(new Runtime(std::move(impl)));
}

const Place& Runtime::place() const { return impl_->place; }
Communicator& Runtime::cpu() { return *impl_->cpu; }
ActivityBoard& Runtime::activity() { return impl_->board; }
FlightRecorder& Runtime::recorder() { return impl_->recorder; }
Timeline* Runtime::timeline() { return impl_->timeline.get(); }

Result<Communicator*> Runtime::cuda() {
  Impl& own = *impl_;
  if (own.cuda) return own.cuda.get();
  if (own.options.device < 0) {
    return make_error(ExitCode::kUsage,
                      "rank {} was started without a GPU (InitOptions::device): NCCL needs one",
                      own.place.rank);
  }
  const SteadyTime deadline = steady_clock::now() + own.options.start_timeout;
  own.guard(deadline, "the start of NCCL");
  auto connected = connect_gpus(*own.rendezvous,
                                {own.place, own.options.device, own.launch.generation,
                                 own.num_gpu_communicators++, left_until(deadline)},
                                [&own](const CommunicatorFailure& failure) {
                                  own.failures.report(gpu_error(failure, own.limits));
                                });
  own.failures.disarm();
  if (!connected) {
    Error error = std::move(connected.error());
    error.message += fmt::format(" ({})", describe(own.limits));
    return start_error(std::move(error), WorkerExit::kPeerLost);
  }
  own.cuda = std::move(*connected);
  own.failures.add(own.cuda.get());
  return own.cuda.get();
}

// An operation's error has no code of a worker; the failure of its communicator has.
void Runtime::leave(Error cause) {
  const bool has_code = cause.code != ExitCode::kInfrastructure && cause.code != ExitCode::kTimeout;
  for (Communicator* const communicator : {impl_->cuda.get(), impl_->cpu.get()}) {
    if (has_code || communicator == nullptr) continue;
    if (const auto failure = communicator->failure()) {
      cause = with_exit(std::move(cause), exit_of(failure->kind)).value();
      break;
    }
  }
  // A launcher's code is no worker's.
  if (cause.code == ExitCode::kInfrastructure) {
    cause = with_exit(std::move(cause), WorkerExit::kInternal).value();
  }
  impl_->failures.leave(std::move(cause));
}

Result<void> Runtime::finalize(milliseconds timeout) {
  return impl_->finalize(steady_clock::now() + timeout);
}

}  // namespace hvd
