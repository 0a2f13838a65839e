#include "launcher/transport/ssh_job.h"

#include <fcntl.h>

#include <algorithm>

namespace hvd {

void SshJob::enter(Phase phase) {
  phase_ = phase;
  if (on_phase_) post([on_phase = on_phase_, phase] { on_phase(phase); });
}

void SshJob::post(std::function<void()> function) {
  const std::lock_guard lock(mutex_);
  if (!loop_) return;
  // cancel() is called on the loop too: it cannot come between the check and the call.
  boost::asio::post(*loop_, [self = shared_from_this(), function = std::move(function)] {
    if (!self->is_cancelled_) function();
  });
}

bool SshJob::pause(std::chrono::nanoseconds duration) {
  std::unique_lock lock(mutex_);
  const SteadyTime until = std::min(deadline_, std::chrono::steady_clock::now() + duration);
  cancelled_.wait_until(lock, until, [this] { return is_cancelled_.load(); });
  return !is_over();
}

void SshJob::cancel() {
  const std::lock_guard lock(mutex_);
  is_cancelled_ = true;
  loop_ = nullptr;
  for (const Guard* guard : guards_) ::shutdown(guard->copy_.get(), SHUT_RDWR);
  cancelled_.notify_all();
}

SshJob::Guard::Guard(SshJob& job, int socket)
    : job_(job), copy_(::fcntl(socket, F_DUPFD_CLOEXEC, 3)) {
  const std::lock_guard lock(job_.mutex_);
  job_.guards_.push_back(this);
  if (job_.is_cancelled_) ::shutdown(copy_.get(), SHUT_RDWR);
}

SshJob::Guard::~Guard() {
  const std::lock_guard lock(job_.mutex_);
  std::erase(job_.guards_, this);
}

}  // namespace hvd
