#include "agent/shim_watch.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <utility>

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

// Between a process's end and the end of its socket, or the other way round; more means that
// somebody else holds the one, or that it does not leave.
constexpr auto kReadLastMessages = std::chrono::milliseconds(200);
constexpr auto kLeaveByItself = std::chrono::milliseconds(1000);

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) return fmt::format("died of signal {}", WTERMSIG(status));
  return fmt::format("left with code {}", WEXITSTATUS(status));
}

}  // namespace

ShimWatch::ShimWatch(Loop& loop, ShimProcess shim, Handlers handlers)
    : handlers_(std::move(handlers)),
      pid_(shim.pid),
      child_(std::in_place, loop, shim.pid),
      pidfd_(loop),
      ping_timer_(loop),
      end_timer_(loop),
      channel_(loop, std::move(shim.socket),
               {[this](v1::FromShim&& message) { take_message(std::move(message)); },
                [this] { handlers_.on_batch(); }, [this] { take_channel_end(); }}) {
  if (!shim.pidfd.is_valid()) return;
  boost::system::error_code ignored;
  pidfd_.assign(shim.pidfd.release(), ignored);
  watch_process();
}

void ShimWatch::watch_process() {
  pidfd_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                    [this](const boost::system::error_code& error) {
                      if (!error) take_process_end();
                    });
}

void ShimWatch::start_pings(Nanos lease) {
  lease_ = lease;
  last_pong_ = boottime_now();
  tick();
}

void ShimWatch::tick() {
  if (is_reaped_ || is_channel_ended_) return;
  // A machine that was suspended must not cost the shim its life: it gets a whole tick to answer.
  if (boottime_now() - last_pong_ >= lease_ / 2 && ping_id_ > 2) {
    handlers_.on_problem(fmt::format("hvd-shim (pid {}) has not answered for {}; killing it", pid_,
                                     format_duration(boottime_now() - last_pong_)));
    return kill();
  }
  v1::ToShim message;
  message.mutable_ping()->set_id(++ping_id_);
  send(message);
  ping_timer_.expires_after(std::chrono::duration_cast<SteadyTime::duration>(lease_ / 4));
  ping_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) tick();
  });
}

void ShimWatch::take_message(v1::FromShim&& message) {
  last_pong_ = boottime_now();
  if (message.message_case() == v1::FromShim::kPong) return;
  handlers_.on_message(std::move(message));
}

void ShimWatch::take_channel_end() {
  is_channel_ended_ = true;
  if (is_reaped_ || !pidfd_.is_open()) return take_process_end();
  arm_end(kLeaveByItself, [this] { kill(); });
}

void ShimWatch::take_process_end() {
  if (!std::exchange(is_reaped_, true)) {
    int status = 0;
    // Without a pidfd only the socket tells; then make sure that it is true.
    if (!pidfd_.is_open()) ::kill(pid_, SIGKILL);
    if (waitpid(pid_, &status, pidfd_.is_open() ? WNOHANG : 0) == pid_) {
      end_text_ = describe_end(status);
    }
    child_.reset();
  }
  ping_timer_.cancel();
  end_timer_.cancel();
  if (is_channel_ended_) return tell_gone();
  arm_end(kReadLastMessages, [this] { tell_gone(); });
}

// The pid is certainly the shim's: it is our child and only we reap it.
void ShimWatch::kill() {
  if (!is_reaped_) ::kill(pid_, SIGKILL);
}

void ShimWatch::leave() {
  is_gone_told_ = true;
  kill();
  child_.reset();
  close();
  boost::system::error_code ignored;
  pidfd_.close(ignored);
  ping_timer_.cancel();
  end_timer_.cancel();
}

void ShimWatch::arm_end(std::chrono::milliseconds delay, std::function<void()> action) {
  end_timer_.expires_after(delay);
  end_timer_.async_wait([action = std::move(action)](const boost::system::error_code& error) {
    if (!error) action();
  });
}

void ShimWatch::tell_gone() {
  if (std::exchange(is_gone_told_, true)) return;
  channel_.close();
  handlers_.on_gone();
}

}  // namespace hvd
