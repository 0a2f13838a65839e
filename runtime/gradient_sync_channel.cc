#include "runtime/gradient_sync_channel.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/StreamGuard.h>

#include "runtime/gradient_sync_convert.h"
#include "runtime/gradient_sync_cuda.h"
#include "runtime/worker_exit.h"

namespace hvd {
namespace {

// How often events of a GPU are looked at while there are some.
constexpr auto kPollPeriod = std::chrono::microseconds(500);

std::optional<c10::Stream> stream_for(const Communicator& data, std::optional<c10::Device> device) {
  if (!device) return std::nullopt;
  if (data.device_kind() == DeviceKind::kCpu) return priority_stream(*device);
  return stream_of_handle(data.stream(), *device);
}

}  // namespace

SyncChannel::SyncChannel(Communicator& data, const SyncOptions& options,
                         std::optional<c10::Device> device, SyncReport& report)
    : data_(data),
      options_(options),
      is_cuda_(data.device_kind() == DeviceKind::kCuda),
      stream_(stream_for(data, device)),
      report_(report) {
  if (stream_) finished_.emplace(stream_->device_type());
  if (stream_ && is_cuda_ && report.has_timeline()) base_.emplace(stream_->device());
  thread_ = std::thread([this] { run(); });
}

SyncChannel::~SyncChannel() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  posted_.notify_one();
  thread_.join();
}

std::unique_ptr<StageTimes> SyncChannel::new_times() {
  const std::lock_guard lock(mutex_);
  if (spare_times_.empty()) {
    const auto type = stream_ ? stream_->device_type() : c10::DeviceType::CPU;
    return std::make_unique<StageTimes>(type, base_.has_value());
  }
  auto times = std::move(spare_times_.back());
  spare_times_.pop_back();
  return times;
}

void SyncChannel::mark_fill(StageTimes& times, const SyncBucket& bucket, Stage stage) const {
  const bool is_on_gpu = !bucket.flat.is_cpu();
  if (report_.has_listener() && !is_on_stream(bucket)) times.mark(stage);
  if (is_on_gpu && (base_ || stage == Stage::kFilled)) {
    times.record(stage, current_stream(bucket.flat.device()));
  }
}

void SyncChannel::post(SyncBucket& bucket, std::unique_ptr<StageTimes> times) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({&bucket, std::move(times)});
    ++num_posted_;
  }
  posted_.notify_one();
}

Result<void> SyncChannel::finish() {
  std::unique_lock lock(mutex_);
  handled_.wait(lock, [this] { return num_handled_ == num_posted_; });
  if (error_) return tl::unexpected(*error_);
  if (finished_) finished_->block(current_stream(stream_->device()));
  return {};
}

void SyncChannel::run() {
  const at::NoGradGuard no_grad;
  while (auto job = take()) {
    handle(std::move(*job));
    poll();
  }
  poll();
}

std::optional<SyncChannel::Job> SyncChannel::take() {
  std::unique_lock lock(mutex_);
  while (!is_stopping_ && queue_.empty()) {
    if (pending_.empty()) {
      posted_.wait(lock);
    } else if (posted_.wait_for(lock, kPollPeriod) == std::cv_status::timeout) {
      lock.unlock();
      poll();
      lock.lock();
    }
  }
  if (is_stopping_) return std::nullopt;
  Job job = std::move(queue_.front());
  queue_.pop_front();
  return job;
}

// Runs even after an error, when it only counts: finish() waits for all.
void SyncChannel::handle(Job job) {
  Result<void> done;
  {
    const std::lock_guard lock(mutex_);
    if (error_) done = tl::unexpected(*error_);
  }
  if (done) {
    try {
      done = reduce(job);
    } catch (const std::exception& exception) {
      done = worker_error(WorkerExit::kInternal, "all-reduce of bucket {}: {}",
                          job.bucket->facts.index, exception.what());
    }
  }
  const bool is_pending = done && is_on_stream(*job.bucket) && report_.has_listener();
  {
    const std::lock_guard lock(mutex_);
    ++num_handled_;
    if (!done && !error_) error_ = done.error();
    if (!is_pending) spare_times_.push_back(std::move(job.times));
  }
  handled_.notify_all();
  if (is_pending) pending_.push_back(std::move(job));
}

Result<void> SyncChannel::reduce(Job& job) {
  SyncBucket& bucket = *job.bucket;
  const bool is_on_gpu = !bucket.flat.is_cpu();
  const c10::OptionalStreamGuard guard(is_on_gpu ? stream_ : std::nullopt);
  if (is_on_gpu) job.times->block(Stage::kFilled, *stream_);
  job.sequence = report_.schedule(bucket.facts);
  mark(job, Stage::kTaken);
  load_wire(bucket);
  mark(job, Stage::kLoaded);
  if (!is_cuda_) report_.start(job.sequence, job.times->at(Stage::kLoaded, nullptr));
  if (auto sent_off = send(bucket); !sent_off) return sent_off;
  mark(job, Stage::kReduced);
  store_wire(bucket);
  mark(job, Stage::kStored);
  if (is_on_gpu) finished_->record(*stream_);
  if (!is_cuda_) report_complete(job);
  return {};
}

Result<void> SyncChannel::send(SyncBucket& bucket) {
  const at::Tensor& data = sent(bucket);
  const Call call{options_.timeout, data_.stream()};
  const auto done =
      data_.all_reduce(data.mutable_data_ptr(), static_cast<std::size_t>(data.numel()),
                       bucket.format.type, {bucket.format.op, 1}, call);
  if (!done) {
    return collective_error(
        data_, done.error().within(fmt::format("gradients of bucket {}", bucket.facts.index)));
  }
  bytes_on_wire_ += data.nbytes();
  return {};
}

bool SyncChannel::is_on_stream(const SyncBucket& bucket) const {
  return is_cuda_ && !bucket.flat.is_cpu();
}

void SyncChannel::mark(Job& job, Stage stage) const {
  if (!report_.has_listener()) return;
  if (!is_on_stream(*job.bucket)) {
    job.times->mark(stage);
  } else if (base_ || stage == Stage::kLoaded || stage == Stage::kStored) {
    job.times->record(stage, *stream_);
  }
}

void SyncChannel::poll() {
  try {
    report_pending();
  } catch (const std::exception& exception) {
    pending_.clear();
    const std::lock_guard lock(mutex_);
    if (error_) return;
    error_ =
        worker_error(WorkerExit::kInternal, "the GPU failed in an all-reduce: {}", exception.what())
            .value();
  }
}

// In order: what comes later on a stream is complete later.
void SyncChannel::report_pending() {
  while (!pending_.empty()) {
    Job& job = pending_.front();
    if (!job.is_started && job.times->has_passed(Stage::kLoaded)) {
      job.is_started = true;
      report_.start(job.sequence, boottime_now());
    }
    if (!job.times->has_passed(Stage::kStored)) return;
    Job complete = std::move(job);
    pending_.pop_front();
    report_complete(complete);
    const std::lock_guard lock(mutex_);
    spare_times_.push_back(std::move(complete.times));
  }
}

void SyncChannel::report_complete(Job& job) {
  if (!report_.has_listener()) return;
  const bool is_known_by_events = is_on_stream(*job.bucket);
  if (is_known_by_events && base_) base_->refresh();
  const TimeBase* const base = is_known_by_events && base_ ? &*base_ : nullptr;
  const Nanos end =
      is_known_by_events && !base ? boottime_now() : job.times->at(Stage::kStored, base);
  report_.complete(job.sequence, end, pending_.empty() ? -1 : pending_.front().bucket->facts.index);
  if (!report_.has_timeline()) return;
  std::array<Nanos, kNumStages> times{};
  for (std::size_t i = 0; i < kNumStages; ++i) {
    times[i] = job.times->at(static_cast<Stage>(i), base);
  }
  report_.draw(job.bucket->facts, times);
}

}  // namespace hvd
