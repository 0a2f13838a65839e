#include "launcher/job.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "base/random_bytes.h"
#include "base/sys.h"
#include "launcher/status_line.h"
#include "launcher/visible.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr Nanos kQuietOnTerminal = seconds(5);

// Whether its silence means anything.
bool is_heard(const Node& node) {
  return node.is_reached() && !node.is_link_closed && !node.is_lost;
}

// Until the first of them may have been silent for longer than the lease.
Nanos until_silence(const std::vector<std::unique_ptr<Node>>& nodes, Nanos lease) {
  Nanos left = lease;
  for (const auto& node : nodes) {
    if (is_heard(*node)) left = std::min(left, node->last_heard + lease - boottime_now());
  }
  return std::max(left, Nanos::zero()) + milliseconds(1);
}

}  // namespace

Job::Job(Loop& loop, Options options, std::optional<Plan> plan, Surroundings surroundings,
         AgentImage agent)
    : loop_(loop),
      options_(std::move(options)),
      environment_(std::move(surroundings.environment)),
      core_limit_(options_.env_request.core_dumps == CoreDumps::kNone ? 0
                                                                      : surroundings.core_limit),
      nofile_limit_(surroundings.nofile_limit),
      earlier_(std::move(surroundings.earlier_attempts)),
      on_failed_(std::move(surroundings.on_failed)),
      agent_(std::move(agent)),
      stage_(surroundings.stage),
      job_id_(hex_of(random_bytes(16).value())),
      time_limit_(options_.timeout ? std::optional(surroundings.hvdrun_start + *options_.timeout)
                                   : std::nullopt),
      start_time_(steady_clock::now() + surroundings.pause),
      start_deadline_(start_time_ + options_.start_timeout),
      cwd_(std::move(surroundings.cwd)),
      umask_(sys::current_umask()),
      nonce_(random_bytes(16).value()),
      plan_(std::move(plan)),
      writer_(loop, STDOUT_FILENO, STDERR_FILENO,
              [this](bool is_stderr, int number) {
                if (!is_stderr) on_stdout_broken(number);
              }),
      idle_timer_(loop, SteadyTime::max()),
      store_timer_(loop),
      changed_(loop),
      ended_(loop),
      signals_(loop, *surroundings.signals,
               [this](const ReceivedSignal& signal) { on_signal(signal); }) {
  // A stalled stderr must never stop the loop: our own lines go the way of the workers'.
  set_log_sink([this](LogLevel level, std::string_view text) {
    boost::asio::dispatch(loop_, [this, line = log_line(level, text)] { print_own(line); });
  });
  open_events(surroundings.events_fd);
  record_earlier_attempts();
  make_nodes();
}

Job::~Job() { set_log_sink(nullptr); }

// Words of nodes and of programs on them may be in it.
void Job::print_own(std::string_view words) {
  std::string line;
  append_visible(line, words);
  if (lines_) {
    lines_->add_own_line(line);
    return submit_output({});
  }
  writer_.submit({{.is_stderr = true, .bytes = line + '\n'}}, {});
}

Task<int> Job::run() {
  const auto in_background = [this](Task<void> task) {
    boost::asio::co_spawn(loop_, std::move(task), boost::asio::detached);
  };
  in_background(keep_heartbeat());
  in_background(keep_timeout());
  in_background(keep_timeout_signal());
  if (options_.watch.gpu_period) in_background(keep_gpu_lines());
  while (!is_stopping() && steady_clock::now() < start_time_) co_await wait_for_change(start_time_);
  in_background(keep_status());
  if (!is_stopping()) co_await start();
  co_await wait_for_end();
  co_await finish_output();
  tell_gpus();
  co_await collect_timelines();
  co_await say_bye();
  co_await wait_for_reaps();
  if (is_hung_cause_told_) show_evidence();
  const int code = conclude();
  co_await flush_report();
  ended_.set();
  for (const auto& node : nodes_) node->connection.reset();  // the loop waits for their programs
  signals_.stop();
  idle_timer_.cancel();
  store_timer_.cancel();
  co_return code;
}

void Job::move(JobEvent event) {
  const auto next = next_state(state_, event);
  const SteadyTime now = steady_clock::now();
  if (!next) {
    log(LogLevel::kDebug, "job: {} ignored in state {}", name_of(event), name_of(state_));
    return;
  }
  log(LogLevel::kDebug, "job: {}: {} -> {} after {}", name_of(event), name_of(state_),
      name_of(*next), format_duration(now - state_since_));
  state_ = *next;
  state_since_ = now;
  emit("phase", {{"phase", name_of(state_)}});
  changed();
}

// One waiter only: the coroutine of run().
Task<void> Job::wait_for_change(SteadyTime deadline) {
  co_await changed_.wait_until(deadline);
  changed_.clear();
}

void Job::add_cause(Cause cause) {
  end_for_hung_cause();  // if there is one, it was there before
  const bool is_first = !first_cause_->is_open() && first_cause_->cause() == nullptr;
  if (!first_cause_->add(std::move(cause), boottime_now())) return;
  if (is_first) {
    settle_sequence_ = heartbeat_sequence_ + 1;
    send_heartbeats();
  }
  settle();
}

// Decides if it is time, and stops the job as soon as a cause may be named.
void Job::settle() {
  first_cause_->decide(boottime_now());
  if (state_ == JobState::kStopping || state_ == JobState::kEnded) return;
  const auto cause = first_cause_->likeliest();
  if (!cause) return;
  if (first_cause_->is_waiting_for_another()) {
    if (std::exchange(is_settling_, true)) return;
    return boost::asio::co_spawn(loop_, keep_settling(), boost::asio::detached);
  }
  std::string reason;
  append_visible(reason, sentence(*cause, job_clock()));
  move(JobEvent::kCause);
  stop_all(options_.grace, reason, is_job_broken(*cause));
}

Task<void> Job::keep_settling() {
  while (first_cause_->is_open()) {
    const bool is_over = co_await ended_.wait_until(settle_deadline());
    if (is_over) co_return;
    settle();
  }
}

void Job::add_own_cause(CauseKind kind, Nanos limit, std::string text) {
  Cause cause;
  cause.kind = kind;
  cause.limit = limit;
  cause.text = std::move(text);
  cause.time = boottime_now();
  add_cause(std::move(cause));
}

void Job::on_stdout_broken(int errno_value) {
  Cause cause;
  cause.kind = CauseKind::kStdoutGone;
  cause.value = errno_value;
  cause.time = boottime_now();
  add_cause(std::move(cause));
}

void Job::send_heartbeats() {
  ++heartbeat_sequence_;
  v1::ControlRequest request;
  auto* heartbeat = request.mutable_heartbeat();
  heartbeat->set_sequence(heartbeat_sequence_);
  for (const auto& node : nodes_) {
    // From the hello on: the node's lease begins with it.
    if (!node->link || node->is_link_closed) continue;
    heartbeat->set_launcher_boottime_ns(boottime_now().count());
    node->link->send(request);
  }
}

void Job::find_silent_nodes() {
  const Nanos now = boottime_now();
  for (const auto& node : nodes_) {
    if (is_heard(*node) && now - node->last_heard > options_.lease) {
      lose(*node, fmt::format("no heartbeat for {}", format_duration(now - node->last_heard)));
    }
  }
}

// Looks at the very end of a lease, too: between two heartbeats there may be a second.
Task<void> Job::keep_heartbeat() {
  SteadyTime beat = steady_clock::now() + options_.heartbeat;
  while (true) {
    const SteadyTime look = steady_clock::now() + until_silence(nodes_, options_.lease);
    const bool is_over = co_await ended_.wait_until(std::min(beat, look));
    if (is_over) co_return;
    if (steady_clock::now() >= beat) {
      send_heartbeats();
      beat = steady_clock::now() + options_.heartbeat;
    }
    find_silent_nodes();
  }
}

Task<void> Job::keep_timeout() {
  if (!time_limit_) co_return;
  const bool is_over = co_await ended_.wait_until(*time_limit_);
  if (is_over) co_return;
  if (options_.watch.hook.empty()) {
    add_own_cause(CauseKind::kTimeout, *options_.timeout, "");
    co_return;
  }
  Cause cause;
  cause.kind = CauseKind::kTimeout;
  cause.limit = *options_.timeout;
  cause.time = boottime_now();
  end_hung(std::move(cause), {});
}

// At -v every change of the status line while the job starts; on a terminal, from the fifth second.
Task<void> Job::keep_status() {
  std::string last;
  const bool is_terminal = ::isatty(STDERR_FILENO) == 1;
  while (state_ < JobState::kRunning) {
    const bool is_over = co_await ended_.wait_until(steady_clock::now() + milliseconds(500));
    if (is_over) co_return;
    const bool is_told = is_logged(LogLevel::kInfo) ||
                         (is_terminal && steady_clock::now() - start_time_ > kQuietOnTerminal);
    std::string line = status_line(progress());
    if (state_ >= JobState::kRunning || !is_told || line == last) continue;
    write_log(LogLevel::kInfo, line);
    last = std::move(line);
  }
}

std::vector<NodeProgress> Job::progress() const {
  std::vector<NodeProgress> result;
  for (const auto& node : nodes_) {
    result.push_back({node->host.label(), phase_name(node->phases.current()),
                      node->phases.current() == Phase::kRunning});
  }
  return result;
}

}  // namespace hvd
