#include "training/petrv2/synth/synth_tables.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "training/petrv2/synth/shots.h"
#include "training/petrv2/synth/token.h"

namespace hvd::petrv2 {
namespace {

using nlohmann::ordered_json;

// What a token is for; part of the token, so never the same for two tables.
enum class Table : std::uint32_t {
  kSensor,
  kCalibration,
  kLog,
  kMap,
  kScene,
  kSample,
  kSampleData,
  kCategory,
  kInstance,
  kAnnotation,
  kAttribute,
};

constexpr std::size_t kLidar = kNumCameras;  // the sensor after the cameras
constexpr std::size_t kNumSensors = kNumCameras + 1;

constexpr std::array<std::string_view, kClassNames.size()> kCategories = {
    "vehicle.car",
    "vehicle.truck",
    "vehicle.construction",
    "vehicle.bus.rigid",
    "vehicle.trailer",
    "movable_object.barrier",
    "vehicle.motorcycle",
    "vehicle.bicycle",
    "human.pedestrian.adult",
    "movable_object.trafficcone"};
constexpr std::array<std::string_view, 8> kAttributes = {
    "vehicle.moving",      "vehicle.stopped",     "vehicle.parked",
    "cycle.with_rider",    "cycle.without_rider", "pedestrian.sitting_lying_down",
    "pedestrian.standing", "pedestrian.moving"};
constexpr std::array<std::string_view, 4> kVisibilities = {"v0-40", "v40-60", "v60-80", "v80-100"};

ordered_json to_json(const Quaternion& q) { return {q.w, q.x, q.y, q.z}; }

ordered_json to_json(const Matrix3& m) {
  return {{m[0], m[1], m[2]}, {m[3], m[4], m[5]}, {m[6], m[7], m[8]}};
}

// From how many pixels, those of a 1600 x 900 image, to a plausible number of lidar points.
std::int64_t lidar_points(std::int64_t visible, const ImageSize& size) {
  constexpr double kFewPixels = 30;
  constexpr double kPixelsPerPoint = 40;
  const double pixels =
      static_cast<double>(visible) * (1600.0 * 900.0) / (size.width * size.height);
  if (pixels < kFewPixels) return 0;
  return std::max<std::int64_t>(1, std::lround(pixels / kPixelsPerPoint));
}

std::string_view visibility_token(const Coverage& coverage) {
  const double part = coverage.total == 0 ? 0
                                          : static_cast<double>(coverage.visible) /
                                                static_cast<double>(coverage.total);
  return part < 0.4 ? "1" : part < 0.6 ? "2" : part < 0.8 ? "3" : "4";
}

class TablesBuilder {
 public:
  TablesBuilder(const std::vector<WorldScene>& scenes, const WorldPlan& plan,
                const std::vector<SceneCoverage>& coverage)
      : scenes_(scenes), plan_(plan), coverage_(coverage) {}

  std::map<std::string_view, ordered_json> build() {
    for (const std::string_view name :
         {"attribute", "calibrated_sensor", "category", "ego_pose", "instance", "log", "map",
          "sample", "sample_annotation", "sample_data", "scene", "sensor", "visibility"}) {
      tables_[name] = ordered_json::array();
    }
    add_vocabulary();
    add_sensors();
    add_map();
    for (std::size_t scene = 0; scene < scenes_.size(); ++scene) add_scene(scene);
    return std::move(tables_);
  }

 private:
  [[nodiscard]] std::string token(Table table, std::size_t scene, std::size_t number) const {
    const auto bits = philox_4x32_10(
        {static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(scene),
         static_cast<std::uint32_t>(table), 0x746F6B65},
        {static_cast<std::uint32_t>(plan_.seed), static_cast<std::uint32_t>(plan_.seed >> 32U)});
    return Token{std::uint64_t{bits[0]} << 32U | bits[1], std::uint64_t{bits[2]} << 32U | bits[3]}
        .text();
  }

  // The token of entry `number` of a chain of `count`; empty beyond its ends.
  [[nodiscard]] std::string chained(Table table, std::size_t scene, std::size_t number,
                                    std::size_t count) const {
    return number < count ? token(table, scene, number) : "";  // 0 - 1 is beyond, too
  }

  void add_vocabulary() {
    for (std::size_t i = 0; i < kCategories.size(); ++i) {
      tables_["category"].push_back({{"token", token(Table::kCategory, 0, i)},
                                     {"name", kCategories[i]},
                                     {"description", ""}});
    }
    for (std::size_t i = 0; i < kAttributes.size(); ++i) {
      tables_["attribute"].push_back({{"token", token(Table::kAttribute, 0, i)},
                                      {"name", kAttributes[i]},
                                      {"description", ""}});
    }
    for (std::size_t i = 0; i < kVisibilities.size(); ++i) {
      tables_["visibility"].push_back(
          {{"token", std::to_string(i + 1)}, {"level", kVisibilities[i]}, {"description", ""}});
    }
  }

  void add_sensors() {
    for (std::size_t i = 0; i < kNumSensors; ++i) {
      const bool is_lidar = i == kLidar;
      tables_["sensor"].push_back({{"token", token(Table::kSensor, 0, i)},
                                   {"channel", is_lidar ? "LIDAR_TOP" : kCameraNames[i]},
                                   {"modality", is_lidar ? "lidar" : "camera"}});
    }
  }

  void add_map() {
    std::vector<std::string> logs;
    for (std::size_t scene = 0; scene < scenes_.size(); ++scene) {
      logs.push_back(token(Table::kLog, scene, 0));
    }
    tables_["map"].push_back({{"token", token(Table::kMap, 0, 0)},
                              {"category", "semantic_prior"},
                              {"filename", ""},
                              {"log_tokens", logs}});
  }

  void add_scene(std::size_t scene) {
    const std::size_t num_samples = plan_.samples_per_scene;
    tables_["log"].push_back({{"token", token(Table::kLog, scene, 0)},
                              {"logfile", ""},
                              {"vehicle", "synth"},
                              {"date_captured", "2018-07-24"},
                              {"location", "singapore-onenorth"}});
    tables_["scene"].push_back(
        {{"token", token(Table::kScene, scene, 0)},
         {"log_token", token(Table::kLog, scene, 0)},
         {"nbr_samples", num_samples},
         {"first_sample_token", token(Table::kSample, scene, 0)},
         {"last_sample_token", token(Table::kSample, scene, num_samples - 1)},
         {"name", scenes_[scene].name},
         {"description", "made up, not driven"}});
    add_samples(scene);
    add_calibrations(scene);
    for (std::size_t sensor = 0; sensor < kNumSensors; ++sensor) add_frames(scene, sensor);
    for (std::size_t i = 0; i < scenes_[scene].objects.size(); ++i) add_instance(scene, i);
  }

  void add_samples(std::size_t scene) {
    const std::size_t count = plan_.samples_per_scene;
    for (std::size_t i = 0; i < count; ++i) {
      tables_["sample"].push_back({{"token", token(Table::kSample, scene, i)},
                                   {"timestamp", sample_time_us(scenes_[scene], i)},
                                   {"prev", chained(Table::kSample, scene, i - 1, count)},
                                   {"next", chained(Table::kSample, scene, i + 1, count)},
                                   {"scene_token", token(Table::kScene, scene, 0)}});
    }
  }

  void add_calibrations(std::size_t scene) {
    for (std::size_t i = 0; i < kNumSensors; ++i) {
      const Mount mount = i == kLidar ? lidar_mount() : scenes_[scene].rig[i].mount;
      tables_["calibrated_sensor"].push_back(
          {{"token", token(Table::kCalibration, scene, i)},
           {"sensor_token", token(Table::kSensor, 0, i)},
           {"translation", mount.translation},
           {"rotation", to_json(mount.rotation)},
           {"camera_intrinsic",
            i == kLidar ? ordered_json::array() : to_json(scenes_[scene].rig[i].intrinsic)}});
    }
  }

  // The lidar has key frames only.
  void add_frames(std::size_t scene, std::size_t sensor) {
    const std::size_t count = sensor == kLidar ? plan_.samples_per_scene : num_shots(plan_);
    for (std::size_t i = 0; i < count; ++i) {
      const Shot shot =
          sensor == kLidar ? lidar_shot(scene, i) : shot_of(scenes_[scene], i, sensor);
      add_frame(scene, sensor, shot, i, count);
    }
  }

  [[nodiscard]] Shot lidar_shot(std::size_t scene, std::size_t sample) const {
    const std::int64_t timestamp = sample_time_us(scenes_[scene], sample);
    return {
        timestamp, 1e-6 * static_cast<double>(timestamp - scenes_[scene].start_us), sample, true,
        fmt::format("samples/LIDAR_TOP/{}__LIDAR_TOP__{}.pcd.bin", scenes_[scene].name, timestamp)};
  }

  void add_frame(std::size_t scene, std::size_t sensor, const Shot& shot, std::size_t number,
                 std::size_t count) {
    // Tokens of a sensor's frames follow each other; the pose has its frame's token, as in
    // nuScenes.
    const std::size_t base = sensor * num_shots(plan_);
    const std::string own = token(Table::kSampleData, scene, base + number);
    const bool is_lidar = sensor == kLidar;
    const auto neighbour = [&](std::size_t other) {
      return other < count ? token(Table::kSampleData, scene, base + other) : std::string();
    };
    tables_["sample_data"].push_back(
        {{"token", own},
         {"sample_token", token(Table::kSample, scene, shot.sample)},
         {"ego_pose_token", own},
         {"calibrated_sensor_token", token(Table::kCalibration, scene, sensor)},
         {"timestamp", shot.timestamp_us},
         {"fileformat", is_lidar ? "pcd" : "jpg"},
         {"is_key_frame", shot.is_key},
         {"height", is_lidar ? 0 : plan_.image.height},
         {"width", is_lidar ? 0 : plan_.image.width},
         {"filename", shot.filename},
         {"prev", neighbour(number - 1)},
         {"next", neighbour(number + 1)}});
    const Mount pose = scenes_[scene].ego.at(shot.time);
    tables_["ego_pose"].push_back({{"token", own},
                                   {"timestamp", shot.timestamp_us},
                                   {"rotation", to_json(pose.rotation)},
                                   {"translation", pose.translation}});
  }

  // The samples that annotate an object.
  [[nodiscard]] std::vector<std::size_t> samples_of(std::size_t scene, std::size_t object) const {
    constexpr double kReach = 80;  // m
    std::vector<std::size_t> samples;
    for (std::size_t i = 0; i < plan_.samples_per_scene; ++i) {
      const double time = lidar_shot(scene, i).time;
      const Vector3 center = scenes_[scene].objects[object].center_at(time);
      const Vector3 ego = scenes_[scene].ego.at(time).translation;
      if (std::hypot(center[0] - ego[0], center[1] - ego[1]) < kReach) samples.push_back(i);
    }
    return samples;
  }

  [[nodiscard]] std::string annotation_token(std::size_t scene, std::size_t object,
                                             std::size_t sample) const {
    return token(Table::kAnnotation, scene, object * plan_.samples_per_scene + sample);
  }

  void add_instance(std::size_t scene, std::size_t object) {
    const auto samples = samples_of(scene, object);
    if (samples.empty()) return;
    const auto label = static_cast<std::size_t>(scenes_[scene].objects[object].label);
    tables_["instance"].push_back(
        {{"token", token(Table::kInstance, scene, object)},
         {"category_token", token(Table::kCategory, 0, label)},
         {"nbr_annotations", samples.size()},
         {"first_annotation_token", annotation_token(scene, object, samples.front())},
         {"last_annotation_token", annotation_token(scene, object, samples.back())}});
    for (std::size_t i = 0; i < samples.size(); ++i) {
      ordered_json entry = annotation(scene, object, samples[i]);
      entry["prev"] = i == 0 ? "" : annotation_token(scene, object, samples[i - 1]);
      entry["next"] =
          i + 1 == samples.size() ? "" : annotation_token(scene, object, samples[i + 1]);
      tables_["sample_annotation"].push_back(std::move(entry));
    }
  }

  [[nodiscard]] ordered_json annotation(std::size_t scene, std::size_t object,
                                        std::size_t sample) const {
    const WorldObject& subject = scenes_[scene].objects[object];
    const Coverage& coverage = coverage_[scene][sample][object];
    return {{"token", annotation_token(scene, object, sample)},
            {"sample_token", token(Table::kSample, scene, sample)},
            {"instance_token", token(Table::kInstance, scene, object)},
            {"visibility_token", visibility_token(coverage)},
            {"attribute_tokens", ordered_json::array()},
            {"translation", subject.center_at(lidar_shot(scene, sample).time)},
            {"size", subject.size},
            {"rotation", to_json(turn_about_z(subject.heading))},
            {"prev", ""},
            {"next", ""},
            {"num_lidar_pts", lidar_points(coverage.visible, plan_.image)},
            {"num_radar_pts", 0}};
  }

  const std::vector<WorldScene>& scenes_;
  const WorldPlan& plan_;
  const std::vector<SceneCoverage>& coverage_;
  std::map<std::string_view, ordered_json> tables_;
};

}  // namespace

Result<void> write_synth_tables(const std::vector<WorldScene>& scenes, const WorldPlan& plan,
                                const std::vector<SceneCoverage>& coverage,
                                const std::string& folder) {
  for (const auto& [name, table] : TablesBuilder(scenes, plan, coverage).build()) {
    auto done = write_whole_file(fmt::format("{}/{}.json", folder, name), table.dump(0) + "\n");
    if (!done) return done;
  }
  return {};
}

}  // namespace hvd::petrv2
