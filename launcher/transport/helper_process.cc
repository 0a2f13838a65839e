#include "launcher/transport/helper_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>

namespace hvd {
namespace {

constexpr auto kPatience = std::chrono::seconds(1);

}  // namespace

std::shared_ptr<HelperProcess> HelperProcess::watch(Loop& loop, ChildProcess child, Ending ending,
                                                    SteadyTime::duration patience) {
  auto helper = std::make_shared<HelperProcess>(loop, std::move(child), ending, patience);
  const auto keep = [helper](std::exception_ptr) {};
  boost::asio::co_spawn(loop, helper->read_errors(), keep);
  boost::asio::co_spawn(loop, helper->reap(), keep);
  return helper;
}

HelperProcess::HelperProcess(Loop& loop, ChildProcess child, Ending ending,
                             SteadyTime::duration patience)
    : loop_(loop),
      ending_(ending),
      patience_(patience),
      pid_(child.pid),
      stream_(std::move(child.stream)),
      pidfd_(loop, child.pidfd.release()),
      error_pipe_(loop, child.error_pipe.release()),
      has_ended_(loop),
      has_read_errors_(loop) {}

// Reached with a living child only when the loop itself goes away.
HelperProcess::~HelperProcess() {
  if (!has_ended_.is_set() && ending_ == Ending::kBySignal) signal_group(SIGTERM);
}

Task<void> HelperProcess::read_errors() {
  std::array<char, 4096> buffer;
  while (true) {
    const auto [error, size] =
        co_await error_pipe_.async_read_some(boost::asio::buffer(buffer), kAwait);
    if (error) break;
    side_text_.append({buffer.data(), size});
  }
  has_read_errors_.set();
}

Task<void> HelperProcess::reap() {
  const auto [error] = co_await pidfd_.async_wait(pidfd_.wait_read, kAwait);
  if (error) co_return;
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG) == 0 &&
      info.si_pid == pid_) {
    side_text_.set_ending(describe_ending({info.si_code, info.si_status}));
  }
  has_ended_.set();
  // Somebody else may hold the pipe for ever: a connection master of ssh.
  if (is_ending_) error_pipe_.cancel();
}

Task<void> HelperProcess::wait_until_ended(SteadyTime deadline) {
  // In steps of one wait each: g++ 12 miscompiles a second wait in the body of such a condition.
  const bool has_ended = co_await has_ended_.wait_until(deadline);
  if (!has_ended) co_return;
  (void)co_await has_read_errors_.wait_until(deadline);
}

UniqueFd HelperProcess::take_stream() {
  if (ending_ == Ending::kBySignal) {
    taken_stream_.reset(::fcntl(stream_.get(), F_DUPFD_CLOEXEC, 0));
  }
  return std::move(stream_);
}

// Some programs end only with the end of their input: gRPC may close its descriptor much later.
void HelperProcess::end() {
  if (std::exchange(is_ending_, true)) return;
  stream_.reset();
  if (taken_stream_.is_valid()) ::shutdown(taken_stream_.get(), SHUT_RDWR);
  taken_stream_.reset();
  if (has_ended_.is_set()) {
    error_pipe_.cancel();
  } else {
    boost::asio::co_spawn(loop_, hasten(), [self = shared_from_this()](std::exception_ptr) {});
  }
}

Task<void> HelperProcess::hasten() {
  for (const int signal : {SIGTERM, SIGKILL}) {
    const bool is_first = signal == SIGTERM && ending_ == Ending::kByItself;
    const SteadyTime limit = std::chrono::steady_clock::now() + (is_first ? patience_ : kPatience);
    const bool has_ended = co_await has_ended_.wait_until(limit);
    if (has_ended) co_return;
    signal_group(signal);
  }
}

// The leader is not reaped before has_ended_ is set, so the number cannot be another group's.
void HelperProcess::signal_group(int signal) const {
  ::kill(-pid_, signal);
  ::kill(-pid_, SIGCONT);
}

}  // namespace hvd
