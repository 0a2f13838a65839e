// For the tests of this folder: small record sets on disk, whose images tell where they are from.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "training/petrv2/data/jpeg.h"
#include "training/petrv2/data/records.h"

namespace hvd::petrv2 {

// A folder that goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hvdrun-data-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] std::string path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// One colour with a ramp from left to right.
inline RgbImage ramp_image(int height, int width, std::uint8_t level) {
  RgbImage image{height, width, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const auto ramp = static_cast<std::uint8_t>(x * 100 / width);
      image.rgb.insert(image.rgb.end(), {level, ramp, static_cast<std::uint8_t>(255 - ramp)});
    }
  }
  return image;
}

inline constexpr int kFixtureHeight = 36;
inline constexpr int kFixtureWidth = 64;
inline constexpr std::int64_t kFixtureTime = 1'532'402'927'000'000;  // us

// Step `id` of a scene: a twelfth of a second apart, its images of level 4 (id mod 60) + camera.
inline StepRecord fixture_step(const std::string& scene, std::int64_t id) {
  StepRecord step;
  step.scene = scene;
  step.step_id = id;
  step.is_key = id % 6 == 0;
  for (std::size_t camera = 0; camera < kNumCameras; ++camera) {
    const auto level = static_cast<std::uint8_t>(id % 60 * 4 + static_cast<std::int64_t>(camera));
    step.jpeg[camera] = *encode_jpeg(ramp_image(kFixtureHeight, kFixtureWidth, level), 95);
    step.timestamp_us[camera] =
        kFixtureTime + id * 83'000 + static_cast<std::int64_t>(camera) * 100;
    step.height[camera] = kFixtureHeight;
    step.width[camera] = kFixtureWidth;
    step.intrinsic[camera] = {40, 0, 32, 0, 40, 18, 0, 0, 1};
    step.cam2global[camera] = rigid_transform(Quaternion{0.5, -0.5, 0.5, -0.5},
                                              {1000.125 + static_cast<double>(id), 600.0625, 1.5});
  }
  return step;
}

inline AnnotatedBox fixture_box(double x, double y, int label) {
  AnnotatedBox annotated;
  annotated.box = {{x, y, -1}, {2, 4, 1.5}, 0.25, {1, -0.5}, label};
  annotated.num_lidar_pts = 3;
  annotated.instance = "instance";
  return annotated;
}

// The sample at step `id`; it looks back at all `num_previous` steps before `cur_step`.
inline SampleRecord fixture_sample(const std::string& scene, std::int64_t id, std::int64_t cur_step,
                                   std::int64_t num_previous) {
  SampleRecord sample;
  sample.sample_token = scene + "-" + std::to_string(id);
  sample.scene = scene;
  sample.timestamp_us = kFixtureTime + id * 83'000;
  sample.lidar2global = rigid_transform(Quaternion{0.7, 0, 0, -0.7}, {1000, 600, 1.8});
  sample.cur_step = cur_step;
  for (std::int64_t back = 1; back <= num_previous; ++back) {
    sample.prev_steps.push_back(cur_step - back);
  }
  for (std::int64_t i = 0; i <= id % 3; ++i) {
    sample.boxes.push_back(fixture_box(5 + static_cast<double>(i), 10, static_cast<int>(i)));
  }
  return sample;
}

// Scenes "a", "b".. of `num_samples` samples each, two steps apart, in `num_shards` shards.
inline void write_fixture_set(const std::string& folder, int num_scenes, int num_samples,
                              std::size_t num_shards, const std::string& split = "train") {
  auto writer = RecordSetWriter::create(folder, split, num_shards);
  ASSERT_TRUE(writer) << writer.error().message;
  for (int scene = 0; scene < num_scenes; ++scene) {
    const std::string name(1, static_cast<char>('a' + scene));
    const std::int64_t first_id = scene * 100;
    std::vector<std::int64_t> steps;
    for (std::int64_t i = 0; i < 2 * num_samples; ++i) {
      const auto record = writer->add_step(fixture_step(name, first_id + i));
      ASSERT_TRUE(record) << record.error().message;
      steps.push_back(*record);
    }
    for (int i = 0; i < num_samples; ++i) {
      const std::size_t step = 2 * static_cast<std::size_t>(i);
      ASSERT_TRUE(writer->add_sample(
          fixture_sample(name, first_id + static_cast<std::int64_t>(step), steps[step], 2 * i)));
    }
  }
  ASSERT_TRUE(writer->close());
}

}  // namespace hvd::petrv2
