#include "launcher/job.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/log.h"
#include "base/random_bytes.h"
#include "launcher/status_line.h"
#include "launcher/visible.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr Nanos kSecondInterruptAfter = milliseconds(300);
constexpr Nanos kQuietOnTerminal = seconds(5);

std::string current_directory() {
  std::string buffer(4096, '\0');
  return ::getcwd(buffer.data(), buffer.size()) != nullptr ? std::string(buffer.c_str()) : "/";
}

std::uint32_t current_umask() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return mask;
}

}  // namespace

Job::Job(Loop& loop, Options options, std::optional<Plan> plan, EnvList environment,
         AgentImage agent)
    : loop_(loop),
      options_(std::move(options)),
      environment_(std::move(environment)),
      agent_(std::move(agent)),
      job_id_(hex_of(random_bytes(16).value())),
      start_deadline_(start_time_ + options_.start_timeout),
      cwd_(current_directory()),
      umask_(current_umask()),
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
      signals_(loop, [this](int signal) { on_signal(signal); }) {
  // A stalled stderr must never stop the loop: our own lines go the way of the workers'.
  set_log_sink([this](LogLevel level, std::string_view text) {
    boost::asio::dispatch(loop_, [this, line = log_line(level, text)] { print_own(line); });
  });
  make_nodes();
}

Job::~Job() { set_log_sink(nullptr); }

void Job::print_own(std::string_view line) {
  if (lines_) {
    lines_->add_own_line(line);
    return submit_output({});
  }
  writer_.submit({{.is_stderr = true, .bytes = std::string(line) + '\n'}}, {});
}

Task<int> Job::run() {
  const auto in_background = [this](Task<void> task) {
    boost::asio::co_spawn(loop_, std::move(task), boost::asio::detached);
  };
  in_background(keep_heartbeat());
  in_background(keep_timeout());
  in_background(keep_status());
  co_await start();
  co_await wait_for_end();
  co_await finish_output();
  co_await collect_timelines();
  co_await say_bye();
  const int code = conclude();
  co_await flush_report();
  ended_.set();
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
  changed();
}

// One waiter only: the coroutine of run().
Task<void> Job::wait_for_change(SteadyTime deadline) {
  co_await changed_.wait_until(deadline);
  changed_.clear();
}

void Job::add_cause(Cause cause) {
  const bool is_first = !first_cause_->is_open() && first_cause_->cause() == nullptr;
  const bool is_broken = is_job_broken(cause);
  std::string reason;
  append_visible(reason, sentence(cause, job_clock()));
  if (!first_cause_->add(std::move(cause), boottime_now())) return;
  if (is_first) {
    settle_sequence_ = heartbeat_sequence_ + 1;
    send_heartbeats();
  }
  if (state_ == JobState::kStopping || state_ == JobState::kEnded) return;
  move(JobEvent::kCause);
  stop_all(options_.grace, reason, is_broken);
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

void Job::on_signal(int signal) {
  if (signal == SIGUSR1 || signal == SIGUSR2) return forward_signal(signal);
  const SteadyTime now = steady_clock::now();
  if (num_interrupts_ > 0 && now - last_interrupt_ < kSecondInterruptAfter) return;
  last_interrupt_ = now;
  ++num_interrupts_;
  // Ranks may already run while others are still being started.
  const bool have_ranks = state_ == JobState::kStarting || state_ == JobState::kRunning;
  if (num_interrupts_ == 1 && signal == SIGINT && have_ranks) {
    write_log(LogLevel::kInfo, fmt::format("stopping, at most {} for the ranks to end; Ctrl-C "
                                           "again kills them at once",
                                           format_duration(options_.grace)));
  }
  // After the ranks there is only output left that nobody reads.
  const bool is_only_output_left =
      state_ == JobState::kEnded || (num_interrupts_ >= 2 && have_ranks_gone());
  if (num_interrupts_ >= 3 || is_only_output_left) is_leaving_now_ = true;
  Cause cause;
  cause.kind = CauseKind::kUserSignal;
  cause.value = signal;
  cause.time = boottime_now();
  add_cause(std::move(cause));
  if (num_interrupts_ >= 2 || signal == SIGQUIT) {
    stop_all(Nanos::zero(), "the user wants the job to end at once", /*is_broken=*/false);
  }
  changed();
}

void Job::forward_signal(int signal) {
  for (const auto& node : nodes_) {
    if (!node->is_spawn_sent || node->is_ended()) continue;
    v1::ControlRequest request;
    request.mutable_signal()->set_signal(signal);
    node->link->send(std::move(request));
  }
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
    if (!node->is_reached() || node->is_link_closed || node->is_lost) continue;
    if (now - node->last_heard > options_.lease) {
      lose(*node, fmt::format("no heartbeat for {}", format_duration(now - node->last_heard)));
    }
  }
}

Task<void> Job::keep_heartbeat() {
  while (true) {
    const bool is_over = co_await ended_.wait_until(steady_clock::now() + options_.heartbeat);
    if (is_over) co_return;
    send_heartbeats();
    find_silent_nodes();
  }
}

Task<void> Job::keep_timeout() {
  if (!options_.timeout) co_return;
  const bool is_over = co_await ended_.wait_until(start_time_ + *options_.timeout);
  if (is_over) co_return;
  add_own_cause(CauseKind::kTimeout, *options_.timeout, "");
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
    result.push_back({node->host.label(), phase_name(node->phase), node->phase == Phase::kRunning});
  }
  return result;
}

}  // namespace hvd
