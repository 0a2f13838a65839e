#include "training/petrv2/synth/scene_records.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/plural.h"
#include "training/formats/mapped_file.h"
#include "training/petrv2/synth/keyframe_sweeps.h"
#include "training/petrv2/synth/lidar_boxes.h"

namespace hvd::petrv2 {
namespace {

// One key frame of every camera for every sample, in the samples' order.
Result<void> check_keyframes(const NuscenesTables& tables, const NuscenesScene& scene) {
  for (std::size_t camera = 0; camera < scene.images.size(); ++camera) {
    std::vector<std::uint32_t> samples;
    for (const SensorFrame& frame : scene.images[camera]) {
      if (frame.is_key) samples.push_back(frame.sample);
    }
    if (samples == scene.samples) continue;
    const auto [odd, found] =
        std::mismatch(scene.samples.begin(), scene.samples.end(), samples.begin(), samples.end());
    const auto sample = odd == scene.samples.end() ? scene.samples.back() : *odd;
    return make_error(
        "{}: the sample {} has not exactly one key frame of {} at its place in time; "
        "unpack the archive with its tables again",
        scene.name, tables.samples[sample].token.text(), kCameraNames[camera]);
  }
  return {};
}

std::array<CameraTrack, kNumCameras> tracks_of(const NuscenesScene& scene) {
  std::array<CameraTrack, kNumCameras> tracks;
  for (std::size_t camera = 0; camera < tracks.size(); ++camera) {
    for (const SensorFrame& frame : scene.images[camera]) {
      tracks[camera].is_key.push_back(frame.is_key);
    }
  }
  return tracks;
}

// Whether it has its beginning and its end; some writers pad the end with zeros.
bool is_whole_jpeg(std::string_view bytes) {
  constexpr std::string_view kStart = "\xff\xd8";
  constexpr std::string_view kEnd = "\xff\xd9";
  const auto last = bytes.find_last_not_of('\0');
  if (!bytes.starts_with(kStart) || last == std::string_view::npos) return false;
  return bytes.substr(kStart.size(), last + 1 - kStart.size()).ends_with(kEnd);
}

Result<std::string> read_image(const std::string& path, const SensorFrame& frame) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return make_error("{} is missing; unpack the archive with the {} there", path,
                      frame.is_key ? "key frame images" : "camera sweeps");
  }
  const auto file = MappedFile::open(path);
  if (!file) return tl::unexpected(file.error());
  if (!is_whole_jpeg(file->bytes())) {
    return make_error("{} is no complete JPEG file ({}); unpack it again", path,
                      counted(file->bytes().size(), "byte"));
  }
  return std::string(file->bytes());
}

Result<StepRecord> read_step(const NuscenesTables& tables, const NuscenesScene& scene,
                             const SweepStep& step, const std::string& dataroot) {
  StepRecord record;
  record.scene = scene.name;
  record.is_key = step.is_key;
  for (std::size_t camera = 0; camera < kNumCameras; ++camera) {
    const SensorFrame& frame = scene.images[camera][step.images[camera]];
    auto jpeg = read_image(dataroot + "/" + frame.filename, frame);
    if (!jpeg) return tl::unexpected(jpeg.error());
    const Calibration& calibration = tables.calibrations[frame.calibration];
    record.jpeg[camera] = std::move(*jpeg);
    record.timestamp_us[camera] = frame.timestamp_us;
    record.height[camera] = frame.height;
    record.width[camera] = frame.width;
    record.intrinsic[camera] = calibration.intrinsic;
    record.cam2global[camera] = multiply(frame.ego2global, calibration.sensor2ego);
  }
  return record;
}

// The record numbers that the writer gave the steps.
Result<std::vector<std::int64_t>> write_steps(const NuscenesTables& tables,
                                              const NuscenesScene& scene, const SceneSweeps& sweeps,
                                              const std::string& dataroot, RecordSetWriter& writer,
                                              ConvertReport& report) {
  std::vector<std::int64_t> numbers;
  for (const SweepStep& step : sweeps.steps) {
    auto record = read_step(tables, scene, step, dataroot);
    if (!record) return tl::unexpected(record.error());
    record->step_id = static_cast<std::int64_t>(numbers.size());
    const auto number = writer.add_step(*record);
    if (!number) return tl::unexpected(number.error());
    numbers.push_back(*number);
    ++report.num_steps;
    for (const std::string& jpeg : record->jpeg) report.image_bytes += jpeg.size();
  }
  return numbers;
}

SampleRecord make_sample(const NuscenesTables& tables, const NuscenesScene& scene,
                         const NuscenesSample& sample) {
  SampleRecord record;
  record.sample_token = sample.token.text();
  record.scene = scene.name;
  record.timestamp_us = sample.lidar->timestamp_us;
  record.lidar2global = lidar_to_global(tables, sample);
  record.lidar2ego = tables.calibrations[sample.lidar->calibration].sensor2ego;
  record.ego2global = sample.lidar->ego2global;
  record.boxes = boxes_in_lidar_frame(tables, sample);
  return record;
}

}  // namespace

Result<void> write_scene_records(const NuscenesTables& tables, const NuscenesScene& scene,
                                 const std::string& dataroot, RecordSetWriter& writer,
                                 ConvertReport& report) {
  if (auto done = check_keyframes(tables, scene); !done) return done;
  const SceneSweeps sweeps = arrange_sweeps(tracks_of(scene));
  const auto steps = write_steps(tables, scene, sweeps, dataroot, writer, report);
  if (!steps) return tl::unexpected(steps.error());
  for (std::size_t i = 0; i < scene.samples.size(); ++i) {
    SampleRecord record = make_sample(tables, scene, tables.samples[scene.samples[i]]);
    record.cur_step = (*steps)[sweeps.keyframes[i]];
    for (const std::size_t step : sweeps.before[i]) record.prev_steps.push_back((*steps)[step]);
    if (auto done = writer.add_sample(record); !done) return done;
    ++report.num_samples;
    report.num_boxes += record.boxes.size();
    report.num_class_boxes += static_cast<std::size_t>(
        std::count_if(record.boxes.begin(), record.boxes.end(),
                      [](const AnnotatedBox& box) { return box.box.label >= 0; }));
  }
  ++report.num_scenes;
  return {};
}

}  // namespace hvd::petrv2
