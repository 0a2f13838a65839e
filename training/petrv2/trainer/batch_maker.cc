#include "training/petrv2/trainer/batch_maker.h"

#include <cstring>
#include <numbers>

namespace hvd::petrv2 {
namespace {

constexpr std::int64_t kBoxValues = 9;

at::Tensor images_of(const std::vector<Sample>& samples, bool is_for_gpu) {
  const Sample& first = samples.front();
  const auto num_samples = static_cast<std::int64_t>(samples.size());
  at::Tensor images = at::empty({num_samples, kNumViews, first.height, first.width, 3},
                                at::TensorOptions(at::kByte).pinned_memory(is_for_gpu));
  auto* to = images.mutable_data_ptr<std::uint8_t>();
  for (const Sample& sample : samples) {
    TORCH_CHECK(sample.images.size() == first.images.size(), "samples of several sizes");
    std::memcpy(to, sample.images.data(), sample.images.size());
    to += sample.images.size();
  }
  return images;
}

Targets targets_of(const Sample& sample) {
  const auto count = static_cast<std::int64_t>(sample.boxes.size());
  Targets targets{at::empty({count, kBoxValues}, at::kDouble), at::empty({count}, at::kLong)};
  auto* value = targets.boxes.mutable_data_ptr<double>();
  auto* label = targets.labels.mutable_data_ptr<std::int64_t>();
  for (const Box& box : sample.boxes) {
    const double theta = -box.heading - std::numbers::pi / 2;
    for (const double x : box.center) *value++ = x;
    for (const double x : box.size) *value++ = x;
    *value++ = theta;
    for (const double x : box.velocity) *value++ = x;
    *label++ = box.label;
  }
  return targets;
}

}  // namespace

HostBatch host_batch(const std::vector<Sample>& samples, bool is_for_gpu) {
  const auto num_samples = static_cast<std::int64_t>(samples.size());
  HostBatch host;
  host.images = images_of(samples, is_for_gpu);
  host.rest.lidar2img = at::empty({num_samples, kNumViews, 4, 4}, at::kDouble);
  host.rest.time_delta = at::empty({num_samples}, at::kDouble);
  auto* matrix = host.rest.lidar2img.mutable_data_ptr<double>();
  auto* delta = host.rest.time_delta.mutable_data_ptr<double>();
  for (const Sample& sample : samples) {
    for (const Matrix4& view : sample.lidar2img) {
      matrix = std::copy(view.begin(), view.end(), matrix);
    }
    *delta++ = sample.time_delta;
    host.rest.targets.push_back(targets_of(sample));
  }
  return host;
}

Batch on_device(HostBatch host, const Petrv2& model) {
  host.rest.image = model.normalise(host.images);
  return std::move(host.rest);
}

}  // namespace hvd::petrv2
