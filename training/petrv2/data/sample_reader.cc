#include "training/petrv2/data/sample_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "training/petrv2/data/box_filter.h"
#include "training/petrv2/data/counter_rng.h"
#include "training/petrv2/data/geometry.h"
#include "training/petrv2/data/previous_frame.h"

namespace hvd::petrv2 {
namespace {

constexpr std::size_t kViews = kNumCameras;  // of one step

std::size_t image_bytes(const SampleOptions& options) {
  return std::size_t{3} * static_cast<std::size_t>(options.height) *
         static_cast<std::size_t>(options.width);
}

}  // namespace

struct SampleReader::Draws {
  ImageTransform image;
  BevTransform bev;
};

Result<SampleWorkspace> SampleWorkspace::create() {
  return JpegDecoder::create().map([](JpegDecoder decoder) {
    return SampleWorkspace{std::move(decoder), {}, {}};
  });
}

std::uint64_t SampleReader::stand_in(std::uint64_t index, std::uint64_t epoch) const {
  const auto& samples = set_->samples();
  if (!options_.is_training || samples[index].num_boxes > 0) return index;
  CounterRng rng(options_.seed, epoch, index, DrawPurpose::kReplacement);
  std::uint64_t other = index;
  while (samples[other].num_boxes == 0) other = rng.below(samples.size());
  return other;
}

Result<void> SampleReader::check() const {
  if (options_.height <= 0 || options_.width <= 0) {
    return make_error("images of {} x {} px cannot be made", options_.height, options_.width);
  }
  const auto& samples = set_->samples();
  const bool has_boxes = std::any_of(samples.begin(), samples.end(),
                                     [](const SampleEntry& s) { return s.num_boxes > 0; });
  if (has_boxes || !options_.is_training) return {};
  return make_error(
      "none of the {} samples has a box of a known class within {} m that a sensor has seen; "
      "there is nothing to train on",
      samples.size(), kDetectionRange);
}

SampleReader::Draws SampleReader::draw(std::uint64_t index, std::uint64_t epoch,
                                       const StepRecord& step) const {
  const auto source_height = static_cast<int>(step.height[0]);
  const auto source_width = static_cast<int>(step.width[0]);
  if (!options_.is_training || !options_.has_augmentation) {
    return {fixed_image_transform(options_.height, options_.width, source_height, source_width),
            BevTransform{}};
  }
  CounterRng image_rng(options_.seed, epoch, index, DrawPurpose::kImage);
  CounterRng bev_rng(options_.seed, epoch, index, DrawPurpose::kBev);
  return {draw_image_transform(options_.augmentation, options_.height, options_.width,
                               source_height, source_width, image_rng),
          draw_bev_transform(options_.augmentation, bev_rng)};
}

// The six views of a step from `first_view` on: projections and, unless noise replaces them,
// images.
Result<void> SampleReader::fill_views(const SampleRecord& record, const StepRecord& step,
                                      const Draws& draws, std::size_t first_view,
                                      SampleWorkspace& workspace, Sample& sample) const {
  const std::size_t bytes = image_bytes(options_);
  const Matrix3 augmented = image_matrix(draws.image);
  for (std::size_t camera = 0; camera < kViews; ++camera) {
    const std::size_t view = first_view + camera;
    const Matrix4 projection = lidar_to_image(multiply(augmented, step.intrinsic[camera]),
                                              step.cam2global[camera], record.lidar2global);
    sample.lidar2img[view] = transform_projection(projection, draws.bev);
    if (options_.replace_images_by_noise) continue;
    if (auto decoded = workspace.decoder.decode(step.jpeg[camera], workspace.decoded); !decoded) {
      return tl::unexpected(decoded.error().within(kCameraNames[camera]));
    }
    if (workspace.decoded.height != step.height[0] || workspace.decoded.width != step.width[0]) {
      return make_error(
          "{}: the JPEG has {} x {} px, not the {} x {} of image/width and image/height "
          "of the first camera",
          kCameraNames[camera], workspace.decoded.width, workspace.decoded.height, step.width[0],
          step.height[0]);
    }
    workspace.resizer.apply(workspace.decoded, draws.image,
                            std::span(sample.images).subspan(view * bytes, bytes));
  }
  return {};
}

// Views 6 to 11 and the time between the frames.
Result<void> SampleReader::fill_previous(const SampleRecord& record, const StepRecord& current,
                                         const Draws& draws, std::uint64_t epoch,
                                         SampleWorkspace& workspace, Sample& sample) const {
  CounterRng rng(options_.seed, epoch, sample.index, DrawPurpose::kPreviousFrame);
  const auto chosen =
      choose_previous(record.prev_steps.size(),
                      options_.is_training ? FrameChoice::kRandom : FrameChoice::kFixed, rng);
  if (!chosen) {
    sample.time_delta = kDuplicateTimeDelta;
    std::copy_n(sample.lidar2img.begin(), kViews, sample.lidar2img.begin() + kViews);
    const std::size_t half = sample.images.size() / 2;
    std::copy_n(sample.images.begin(), half,
                sample.images.begin() + static_cast<std::ptrdiff_t>(half));
    return {};
  }
  const std::size_t shard = set_->samples()[sample.index].shard;
  const std::int64_t number = record.prev_steps[*chosen];
  const auto previous = set_->read_step(shard, number);
  if (!previous) return tl::unexpected(previous.error());
  sample.time_delta = mean_time_delta(current.timestamp_us, previous->timestamp_us);
  const std::string place = set_->locate(shard, static_cast<std::size_t>(number));
  if (sample.time_delta <= 0) {
    return make_error(
        "{}: the step is not earlier than the one of sample {} whose previous frame it is; "
        "write the records again",
        place, sample.token);
  }
  if (previous->height[0] != current.height[0] || previous->width[0] != current.width[0]) {
    return make_error(
        "{}: the images have not the size of those of sample {}, whose previous frame "
        "they are; write the records again",
        place, sample.token);
  }
  auto filled = fill_views(record, *previous, draws, kViews, workspace, sample);
  if (!filled) return tl::unexpected(filled.error().within(place));
  return {};
}

void SampleReader::fill_with_noise(std::uint64_t epoch, Sample& sample) const {
  CounterRng rng(options_.seed, epoch, sample.index, DrawPurpose::kNoiseImage);
  std::size_t filled = 0;
  while (filled < sample.images.size()) {
    const std::uint64_t bits = rng.next();
    const std::size_t size = std::min(sizeof bits, sample.images.size() - filled);
    std::memcpy(sample.images.data() + filled, &bits, size);
    filled += size;
  }
}

Result<Sample> SampleReader::read(std::uint64_t index, std::uint64_t epoch,
                                  SampleWorkspace& workspace) const {
  Sample sample;
  sample.index = stand_in(index, epoch);
  if (sample.index != index) sample.replaces_token = set_->samples()[index].token;
  const auto record = set_->read_sample(sample.index);
  if (!record) return tl::unexpected(record.error());
  const std::size_t shard = set_->samples()[sample.index].shard;
  const auto current = set_->read_step(shard, record->cur_step);
  if (!current) return tl::unexpected(current.error());
  const Draws draws = draw(sample.index, epoch, *current);
  sample.token = record->sample_token;
  sample.height = options_.height;
  sample.width = options_.width;
  sample.images.resize(2 * kViews * image_bytes(options_));
  auto filled = fill_views(*record, *current, draws, 0, workspace, sample);
  if (!filled) {
    const auto number = static_cast<std::size_t>(record->cur_step);
    return tl::unexpected(filled.error().within(set_->locate(shard, number)));
  }
  auto paired = fill_previous(*record, *current, draws, epoch, workspace, sample);
  if (!paired) return tl::unexpected(std::move(paired).error());
  if (options_.replace_images_by_noise) fill_with_noise(epoch, sample);
  for (const Box& box : training_boxes(*record)) {
    sample.boxes.push_back(transform_box(box, draws.bev));
  }
  return sample;
}

}  // namespace hvd::petrv2
