// Signals to hvdrun: they end the job or go on to the ranks. And its standard input, for rank 0.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "base/plural.h"
#include "launcher/job.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr Nanos kLookPeriod = milliseconds(50);
// The nodes have it to kill all and say so, also where the user hammers on the key.
constexpr Nanos kKillTime = milliseconds(300);
constexpr std::uint64_t kInputWindow = 256 * 1024;  // bytes on their way to rank 0

}  // namespace

void Job::on_signal(const ReceivedSignal& received) {
  const int signal = received.number;
  if (signal == SIGTSTP) return refuse_suspension();
  const auto& forwarded = options_.signals.forwarded;
  if (std::find(forwarded.begin(), forwarded.end(), signal) != forwarded.end()) {
    return pass_signal(signal, "forwarded");
  }
  if (signal == SIGUSR1 || signal == SIGUSR2) {
    emit("signal", {{"signal", signal_name(signal)}, {"action", "ignored"}});
    return log(LogLevel::kInfo, "{} is ignored (see --forward-signals)", signal_name(signal));
  }
  on_stop_signal(received);
}

void Job::refuse_suspension() {
  emit("signal", {{"signal", signal_name(SIGTSTP)}, {"action", "refused"}});
  write_log(
      LogLevel::kWarning,
      "Ctrl-Z is refused: the nodes end the job of an hvdrun that is stopped; Ctrl-C ends it");
}

void Job::on_stop_signal(const ReceivedSignal& received) {
  if (!stop_wishes_.take(received)) return;
  const int num_wishes = stop_wishes_.count();
  const int signal = received.number;
  emit("signal", {{"signal", signal_name(signal)}, {"action", "stop"}});
  // Ranks may already run while others are still being started.
  const bool have_ranks = state_ == JobState::kStarting || state_ == JobState::kRunning;
  if (num_wishes == 1 && signal == SIGINT && have_ranks) {
    write_log(LogLevel::kInfo, fmt::format("stopping, at most {} for the ranks to end; Ctrl-C "
                                           "again kills them at once",
                                           format_duration(options_.grace)));
  }
  // After the ranks there is only output left that nobody reads.
  const bool is_only_output_left =
      state_ == JobState::kEnded || (num_wishes >= 2 && have_ranks_gone());
  const SteadyTime now = steady_clock::now();
  const bool has_killed = kill_wished_ && now - *kill_wished_ >= kKillTime;
  if ((num_wishes >= 3 && has_killed) || is_only_output_left) is_leaving_now_ = true;
  Cause cause;
  cause.kind = CauseKind::kUserSignal;
  cause.value = signal;
  cause.time = boottime_now();
  add_cause(std::move(cause));
  if (num_wishes >= 2 || signal == SIGQUIT) {
    if (!kill_wished_) kill_wished_ = now;
    stop_all(Nanos::zero(), "the user wants the job to end at once", /*is_broken=*/false);
  }
  changed();
}

// To the leaders of all ranks; the nodes answer how many got it.
void Job::pass_signal(int signal, const char* action) {
  const std::uint64_t id = ++last_signal_id_;
  PassedSignal& passed = passed_signals_[id];
  passed.signal = signal;
  passed.action = action;
  for (const auto& node : nodes_) {
    if (!node->is_spawn_sent || node->is_ended()) continue;
    v1::ControlRequest request;
    request.mutable_signal()->set_signal(signal);
    request.mutable_signal()->set_id(id);
    node->link->send(std::move(request));
    ++passed.num_pending;
  }
  if (passed.num_pending == 0) tell_passed(id);
}

void Job::on_signalled(const v1::Signalled& answer) {
  const auto passed = passed_signals_.find(answer.id());
  if (passed == passed_signals_.end()) return;
  passed->second.num_ranks += answer.num_ranks();
  if (--passed->second.num_pending == 0) tell_passed(answer.id());
}

void Job::tell_passed(std::uint64_t id) {
  const PassedSignal passed = passed_signals_.extract(id).mapped();
  const std::string name = signal_name(passed.signal);
  emit("signal", {{"signal", name}, {"action", passed.action}, {"ranks", passed.num_ranks}});
  if (!plan_) return log(LogLevel::kInfo, "{} came before there was a rank for it", name);
  log(LogLevel::kInfo, "{} passed on to {} of {}", name, passed.num_ranks,
      counted(plan_->ranks.size(), "rank"));
}

Task<void> Job::keep_timeout_signal() {
  const auto& wanted = options_.signals.timeout_signal;
  if (!wanted || !time_limit_) co_return;
  const bool is_over = co_await ended_.wait_until(*time_limit_ - wanted->before);
  if (is_over || is_stopping()) co_return;
  // It may be due before there is anybody to get it: after a slow start, or in a late attempt.
  while (state_ < JobState::kRunning) {
    const bool has_ended = co_await ended_.wait_until(steady_clock::now() + kLookPeriod);
    if (has_ended) co_return;
  }
  if (is_stopping()) co_return;
  log(LogLevel::kInfo, "{} to all ranks: --timeout {} passes in {}", signal_name(wanted->signal),
      format_duration(*options_.timeout), format_duration(*time_limit_ - steady_clock::now()));
  has_told_time_limit_ = true;
  pass_signal(wanted->signal, "timeout");
}

// ---- standard input

void Job::start_input() {
  if (!options_.signals.passes_input) return;
  input_ = std::make_unique<InputReader>(loop_, STDIN_FILENO,
                                         [this](std::string data, bool is_end, int error) {
                                           on_input(std::move(data), is_end, error);
                                         });
  input_->grant(kInputWindow);
}

Node* Job::node_of(std::uint32_t rank) const {
  for (const auto& node : nodes_) {
    const auto& ranks = node->ranks;
    if (std::find(ranks.begin(), ranks.end(), rank) != ranks.end()) return node.get();
  }
  return nullptr;
}

void Job::on_input(std::string data, bool is_end, int error) {
  if (error != 0) {
    log(LogLevel::kWarning, "the standard input cannot be read: {}; rank 0 gets end of file",
        std::strerror(error));
  }
  Node* node = node_of(0);
  if (node == nullptr || !node->link || node->is_link_closed) return;
  node->link->send_input(std::move(data), is_end);
}

void Job::on_input_state(const v1::InputState& state) {
  if (!input_) return;
  if (!state.is_closed()) return input_->grant(state.taken());
  log(LogLevel::kDebug, "rank 0 has closed its standard input");
  input_->stop();
}

}  // namespace hvd
