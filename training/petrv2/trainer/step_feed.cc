#include "training/petrv2/trainer/step_feed.h"

#include <c10/core/DeviceGuard.h>

#include "base/signals_blocked.h"

namespace hvd::petrv2 {

StepFeed::StepFeed(Loader& loader, std::uint32_t num_micro_batches, at::Device device)
    : loader_(loader), num_micro_batches_(num_micro_batches), device_(device) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { prepare(); });
}

StepFeed::~StepFeed() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Result<StepData> StepFeed::next() {
  const auto asked = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ready_.has_value(); });
  data_wait_ += std::chrono::steady_clock::now() - asked;
  const bool is_last = !*ready_ || (*ready_)->plan == nullptr;
  if (is_last) return *ready_;
  Result<StepData> step = std::move(*ready_);
  ready_.reset();
  lock.unlock();
  changed_.notify_all();
  return step;
}

// Ends with the last step, or with an error: both stay in ready_.
void StepFeed::prepare() {
  const c10::DeviceGuard guard(device_);
  bool is_last = false;
  while (!is_last) {
    Result<StepData> step = read_step();
    is_last = !step || step->plan == nullptr;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_stopping_ || !ready_; });
    if (is_stopping_) return;
    ready_ = std::move(step);
    lock.unlock();
    changed_.notify_all();
  }
}

// The exceptions here are the library's: no memory, or none that is page-locked.
Result<StepData> StepFeed::read_step() {
  StepData step;
  step.plan = loader_.step();
  if (!step.plan) return step;
  for (std::uint32_t i = 0; i < num_micro_batches_; ++i) {
    const auto samples = loader_.next();
    if (!samples) return tl::unexpected(samples.error());
    try {
      step.micro_batches.push_back(host_batch(*samples, device_.is_cuda()));
    } catch (const std::exception& error) {
      return make_error("no memory for a batch of {} samples: {}", samples->size(), error.what());
    }
  }
  return step;
}

}  // namespace hvd::petrv2
