#include "runtime/gradient_sync_core.h"

#include <ATen/ATen.h>
#include <c10/core/Event.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "runtime/arrival_order.h"
#include "runtime/bucket_plan.h"
#include "runtime/gradient_sync_cuda.h"
#include "runtime/worker_exit.h"

namespace hvd {
namespace {

std::vector<std::size_t> sorted_by(const std::vector<std::string>& names) {
  std::vector<std::size_t> order(names.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return names[a] < names[b]; });
  return order;
}

std::vector<std::size_t> inverse_of(const std::vector<std::size_t>& permutation) {
  std::vector<std::size_t> inverse(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i) inverse[permutation[i]] = i;
  return inverse;
}

std::optional<c10::Device> device_of(const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.is_cpu()) return tensor.device();
  }
  return std::nullopt;
}

at::TensorOptions options_of(const at::Tensor& tensor) {
  return at::TensorOptions().dtype(tensor.scalar_type()).device(tensor.device());
}

at::Tensor gradients_of(const SyncBucket& bucket) {
  const std::int64_t num_riders = bucket.riders.defined() ? bucket.riders.numel() : 0;
  return bucket.flat.narrow(0, 0, bucket.flat.numel() - num_riders);
}

bool has_room_for_riders(at::ScalarType type) { return type == at::kFloat || type == at::kDouble; }

}  // namespace

GradientSynchronizer::Core::Core(std::vector<NamedParameter> parameters, Communicator& data,
                                 Communicator& control, const SyncOptions& options)
    : options_(options),
      data_(data),
      control_(control),
      names_([&] {
        std::vector<std::string> names;
        for (const auto& parameter : parameters) names.push_back(parameter.name);
        return names;
      }()),
      tensors_([&] {
        std::vector<at::Tensor> tensors;
        for (const auto& parameter : parameters) tensors.push_back(parameter.tensor);
        return tensors;
      }()),
      by_name_(sorted_by(names_)),
      name_place_(inverse_of(by_name_)),
      riders_(options.num_riders, 0),
      report_(options, data.device_kind()),
      hooks_(tensors_, [this](std::size_t parameter) { on_gradient(parameter); }) {
  for (at::Tensor& tensor : tensors_) tensor.mutable_grad().reset();
}

void GradientSynchronizer::Core::set_accumulating(bool is_accumulating) {
  const std::lock_guard lock(mutex_);
  is_accumulating_ = is_accumulating;
}

void GradientSynchronizer::Core::set_riders(std::span<const double> values) {
  const std::lock_guard lock(mutex_);
  if (values.size() != options_.num_riders) {
    fail(fmt::format("{} riders were given instead of {}", values.size(), options_.num_riders));
    return;
  }
  riders_.assign(values.begin(), values.end());
}

void GradientSynchronizer::Core::fail(std::string message) {
  if (!error_) {
    error_ = Error{fmt::format("rank {}: {}", data_.rank(), message),
                   static_cast<ExitCode>(WorkerExit::kInternal), false};
  }
}

// In autograd, which must not be left half way: errors wait for finish(), where the other ranks'
// collectives have all been served.
void GradientSynchronizer::Core::on_gradient(std::size_t parameter) {
  const std::lock_guard lock(mutex_);
  if (is_accumulating_) return;
  try {
    arrive(parameter);
  } catch (const std::exception& exception) {
    fail(fmt::format("gradient of {}: {}", names_[parameter], exception.what()));
  }
}

void GradientSynchronizer::Core::arrive(std::size_t parameter) {
  if (!is_open_) {
    fail(fmt::format("the gradient of {} came between finish() and reset()", names_[parameter]));
    return;
  }
  if (!progress_) {
    arrivals_.push_back(parameter);
    return;
  }
  const std::size_t bucket = progress_->bucket_of(parameter);
  if (!tensors_[parameter].is_cpu()) {
    const c10::Stream stream = current_stream(tensors_[parameter].device());
    auto& known = streams_[bucket];
    if (std::find(known.begin(), known.end(), stream) == known.end()) known.push_back(stream);
  }
  switch (progress_->arrive(parameter)) {
    case BucketProgress::Arrival::kTooLate:
      fail(
          fmt::format("the gradient of {} came again after its bucket had been handed over: run "
                      "all but the last backward of a step with set_accumulating(true), and use a "
                      "parameter equally often in every step",
                      names_[parameter]));
      return;
    case BucketProgress::Arrival::kMoreToCome:
      return;
    case BucketProgress::Arrival::kCounted:
      if (bucket == progress_->num_taken() && !report_.report_arrival(names_[parameter])) {
        report_lacking();
      }
      return;
    case BucketProgress::Arrival::kCompletesBucket:
      fill(bucket);
      post_filled();
  }
}

std::vector<std::vector<std::size_t>> GradientSynchronizer::Core::plan(
    const std::vector<std::int64_t>& order) const {
  std::map<std::pair<at::ScalarType, std::string>, int> kinds;
  std::vector<PlannedTensor> planned;
  for (const std::int64_t place : order) {
    const at::Tensor& tensor = tensors_[by_name_[static_cast<std::size_t>(place)]];
    const std::pair key(tensor.scalar_type(), tensor.device().str());
    const int kind = kinds.try_emplace(key, static_cast<int>(kinds.size())).first->second;
    planned.push_back({tensor.nbytes(), kind});
  }
  auto buckets = plan_buckets(planned, {options_.first_bucket_bytes, options_.bucket_bytes});
  for (auto& bucket : buckets) {
    for (std::size_t& i : bucket) i = by_name_[static_cast<std::size_t>(order[i])];
  }
  return buckets;
}

// Collective: the plan follows from rank 0's order.
Result<void> GradientSynchronizer::Core::make_buckets() {
  std::vector<std::size_t> places;
  std::vector<int> num_arrivals(tensors_.size(), 0);
  for (const std::size_t parameter : arrivals_) {
    places.push_back(name_place_[parameter]);
    ++num_arrivals[parameter];
  }
  const auto order =
      adopt_order(order_of_arrival(places, tensors_.size()), control_, {options_.timeout, nullptr});
  if (!order) return tl::unexpected(order.error());

  gradients_.resize(tensors_.size());
  const auto planned = plan(*order);
  const at::TensorOptions first = options_of(tensors_[planned.front().front()]);
  if (options_.num_riders > 0 && !has_room_for_riders(first.dtype().toScalarType())) {
    add_bucket({}, first.dtype(at::kFloat));  // riders alone
  }
  for (const auto& parameters : planned) {
    add_bucket(parameters, options_of(tensors_[parameters.front()]));
  }
  std::vector<std::vector<std::size_t>> of_buckets;
  for (const SyncBucket& bucket : buckets_) of_buckets.push_back(bucket.parameters);
  progress_.emplace(std::move(of_buckets), std::move(num_arrivals));
  times_.resize(buckets_.size());
  streams_.resize(buckets_.size());
  if (data_.size() > 1) {
    channel_ = std::make_unique<SyncChannel>(data_, options_, device_of(tensors_), report_);
  }
  return {};
}

void GradientSynchronizer::Core::add_bucket(std::vector<std::size_t> parameters,
                                            const at::TensorOptions& options) {
  const int index = static_cast<int>(buckets_.size());
  const BucketSettings settings{index, index == 0 ? options_.num_riders : 0, options_.compression,
                                data_.size(), data_.device_kind()};
  report_.name_track(index, names_of(parameters));
  buckets_.push_back(make_bucket(std::move(parameters), tensors_, options, settings));
  const SyncBucket& bucket = buckets_.back();
  for (std::size_t i = 0; i < bucket.views.size(); ++i) {
    gradients_[bucket.parameters[i]] = bucket.views[i];
  }
  if (!bucket.views.empty()) flat_gradients_.push_back(gradients_of(bucket));
}

// The current stream waits for all that gradients of the bucket came on.
void GradientSynchronizer::Core::join_streams(std::size_t bucket) {
  if (streams_[bucket].empty()) return;
  const c10::Stream here = current_stream(buckets_[bucket].flat.device());
  for (const c10::Stream& stream : std::exchange(streams_[bucket], {})) {
    if (stream == here) continue;
    c10::Event event(stream.device_type());
    event.record(stream);
    event.block(here);
    for (const std::size_t parameter : buckets_[bucket].parameters) {
      const at::Tensor& gradient = tensors_[parameter].grad();
      if (gradient.defined()) gradient.record_stream(here);
    }
  }
}

void GradientSynchronizer::Core::fill(std::size_t bucket) {
  if (channel_) {
    times_[bucket] = channel_->new_times();
    channel_->mark_fill(*times_[bucket], buckets_[bucket], Stage::kFull);
  }
  join_streams(bucket);
  num_missing_ += fill_bucket(buckets_[bucket], tensors_, riders_);
  if (channel_) channel_->mark_fill(*times_[bucket], buckets_[bucket], Stage::kFilled);
  progress_->mark_filled(bucket);
}

void GradientSynchronizer::Core::post_filled() {
  while (true) {
    // Riders alone need no gradient to come.
    const std::size_t next = progress_->num_taken();
    if (next < buckets_.size() && buckets_[next].parameters.empty() &&
        !progress_->is_filled(next)) {
      fill(next);
    }
    const auto bucket = progress_->take_next();
    if (!bucket) break;
    if (channel_) channel_->post(buckets_[*bucket], std::move(times_[*bucket]));
  }
  report_lacking();
}

void GradientSynchronizer::Core::report_lacking() const {
  if (!report_.has_listener()) return;
  const std::size_t next = progress_->num_taken();
  if (next == buckets_.size()) {
    report_.report_lacking({}, 0);
    return;
  }
  std::vector<std::size_t> lacking = progress_->lacking(next);
  const std::size_t num_all = lacking.size();
  lacking.resize(std::min(num_all, kNumNamesShown));
  report_.report_lacking(names_of(lacking), num_all);
}

Result<void> GradientSynchronizer::Core::finish() {
  const std::lock_guard lock(mutex_);
  try {
    return finish_step();
  } catch (const std::exception& exception) {
    fail(exception.what());
    return tl::unexpected(*error_);
  }
}

Result<void> GradientSynchronizer::Core::finish_step() {
  if (!is_open_) fail("finish() was called twice in a step: call reset() in between");
  if (is_accumulating_) fail("finish() was called with set_accumulating(true)");
  if (!is_open_ || is_accumulating_) return tl::unexpected(*error_);
  if (!progress_) {
    if (auto made = make_buckets(); !made) return made;
  }
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    if (!progress_->is_filled(bucket)) fill(bucket);
  }
  post_filled();
  is_open_ = false;
  if (channel_) {
    if (auto done = channel_->finish(); !done && !error_) return done;
  }
  if (error_) return tl::unexpected(*error_);
  if (options_.num_riders > 0) mean_riders_ = buckets_.front().riders.clone();
  return {};
}

void GradientSynchronizer::Core::reset() {
  const std::lock_guard lock(mutex_);
  // A step that was given up may have buckets under way. An error comes again with the next
  // finish().
  if (is_open_ && channel_) std::ignore = channel_->finish();
  for (at::Tensor& tensor : tensors_) tensor.mutable_grad().reset();
  std::fill(riders_.begin(), riders_.end(), 0);
  arrivals_.clear();
  num_missing_ = 0;
  is_open_ = true;
  if (!progress_) return;
  progress_->reset();
  report_lacking();
}

std::vector<std::string> GradientSynchronizer::Core::names_of(
    const std::vector<std::size_t>& parameters) const {
  std::vector<std::string> names;
  for (const std::size_t parameter : parameters) names.push_back(names_[parameter]);
  return names;
}

std::vector<std::vector<std::string>> GradientSynchronizer::Core::bucket_names() const {
  std::vector<std::vector<std::string>> names;
  for (const SyncBucket& bucket : buckets_) names.push_back(names_of(bucket.parameters));
  return names;
}

std::uint64_t GradientSynchronizer::Core::bytes_on_wire() const {
  return channel_ ? channel_->bytes_on_wire() : 0;
}

}  // namespace hvd
