#include "runtime/failure_path.h"

#include <utility>

#include "base/log.h"
#include "runtime/worker_exit.h"

namespace hvd {

using std::chrono::steady_clock;

FailurePath::FailurePath(Settings settings)
    : settings_(std::move(settings)), walker_([this] { walk(); }), watcher_([this] { watch(); }) {}

FailurePath::~FailurePath() {
  close();
  walker_.join();
  watcher_.join();
}

void FailurePath::add(Communicator* communicator) {
  const std::lock_guard lock(mutex_);
  communicators_.push_back(communicator);
}

void FailurePath::remove(const Communicator* communicator) {
  const std::lock_guard lock(mutex_);
  std::erase(communicators_, communicator);
}

void FailurePath::report(Error cause) {
  {
    const std::lock_guard lock(mutex_);
    if (cause_ || is_over_) return;
    cause_ = std::move(cause);
    end_ = steady_clock::now() + settings_.limit;
  }
  changed_.notify_all();
}

void FailurePath::leave(Error cause) {
  report(std::move(cause));
  std::unique_lock lock(mutex_);
  for (;;) changed_.wait(lock);
}

void FailurePath::arm(SteadyTime when, Error cause) {
  {
    const std::lock_guard lock(mutex_);
    armed_.emplace(when, std::move(cause));
  }
  changed_.notify_all();
}

void FailurePath::disarm() {
  const std::lock_guard lock(mutex_);
  armed_.reset();
}

void FailurePath::close() {
  std::unique_lock lock(mutex_);
  is_over_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !cause_ || has_left_; });
}

bool FailurePath::is_failing() const {
  const std::lock_guard lock(mutex_);
  return cause_.has_value();
}

void FailurePath::walk() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return cause_ || is_over_; });
  if (!cause_) return;
  const Error cause = *cause_;
  lock.unlock();
  log(LogLevel::kError, "{}: {}", settings_.who, cause.message);
  if (settings_.record) settings_.record(cause);
  abort_all(cause);
  lock.lock();
  if (std::exchange(has_left_, true)) return;
  lock.unlock();
  changed_.notify_all();
  settings_.leave(static_cast<int>(cause.code));
}

void FailurePath::abort_all(const Error& cause) {
  std::vector<std::thread> aborts;
  {
    const std::lock_guard lock(mutex_);
    for (Communicator* const communicator : communicators_) {
      aborts.emplace_back([communicator, reason = cause.message] { communicator->abort(reason); });
    }
  }
  for (std::thread& abort : aborts) abort.join();
}

// Armed causes, and the limit of the path itself.
void FailurePath::watch() {
  std::unique_lock lock(mutex_);
  while (!has_left_ && (cause_ || !is_over_)) {
    const SteadyTime now = steady_clock::now();
    if (cause_ && now >= end_) {
      has_left_ = true;
      lock.unlock();
      log(LogLevel::kError, "{}: the end took longer than {} ms and was cut short", settings_.who,
          settings_.limit.count());
      return settings_.leave(static_cast<int>(WorkerExit::kAbortHung));
    }
    if (!cause_ && armed_ && now >= armed_->first) {
      cause_ = std::move(armed_->second);
      end_ = now + settings_.limit;
      changed_.notify_all();
    } else if (cause_) {
      changed_.wait_until(lock, end_);
    } else if (armed_) {
      changed_.wait_until(lock, armed_->first);
    } else {
      changed_.wait(lock);
    }
  }
}

}  // namespace hvd
