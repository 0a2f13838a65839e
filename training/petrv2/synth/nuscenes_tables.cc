#include "training/petrv2/synth/nuscenes_tables.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "training/petrv2/synth/table_reader.h"

namespace hvd::petrv2 {
namespace {

constexpr int kLidarChannel = kNumCameras;  // channels: the six cameras, then LIDAR_TOP
constexpr int kOtherChannel = -1;

int channel_of(std::string_view name) {
  if (name == "LIDAR_TOP") return kLidarChannel;
  const auto found = std::find(kCameraNames.begin(), kCameraNames.end(), name);
  return found == kCameraNames.end() ? kOtherChannel
                                     : static_cast<int>(found - kCameraNames.begin());
}

struct TokenHash {
  std::size_t operator()(const Token& token) const { return token.high ^ token.low; }
};

// Reads the tables in the order in which they refer to each other.
class TablesReader {
 public:
  explicit TablesReader(const TableSelection& selection)
      : selection_(selection), folder_(selection.dataroot + "/" + selection.version) {}

  Result<NuscenesTables> read() {
    using Step = Result<void> (TablesReader::*)();
    constexpr std::array<Step, 12> kSteps = {
        &TablesReader::read_logs,         &TablesReader::read_scenes,
        &TablesReader::read_samples,      &TablesReader::read_sensors,
        &TablesReader::read_calibrations, &TablesReader::read_frames,
        &TablesReader::read_ego_poses,    &TablesReader::read_categories,
        &TablesReader::read_instances,    &TablesReader::read_annotations,
        &TablesReader::link_annotations,  &TablesReader::place_frames};
    for (const Step step : kSteps) {
      if (auto done = (this->*step)(); !done) return tl::unexpected(done.error());
    }
    return std::move(tables_);
  }

 private:
  // A frame and where it goes once its pose is known.
  struct PendingFrame {
    SensorFrame frame;
    int channel = 0;
    Token ego_pose;
  };

  // Where an annotation's neighbours in time are, and its entry's number for messages.
  struct AnnotationLinks {
    std::size_t entry = 0;
    std::optional<Token> prev;
    std::optional<Token> next;
  };

  [[nodiscard]] std::string path(std::string_view table) const {
    return fmt::format("{}/{}.json", folder_, table);
  }

  // Reads a table and sorts its index, if it has one.
  Result<void> read(std::string_view table, TokenIndex* index,
                    const std::function<void(TableEntry&)>& take) {
    if (auto done = read_table(path(table), take); !done) return done;
    const auto twice = index == nullptr ? std::nullopt : index->sort();
    if (!twice) return {};
    return make_error("{} has the token {} twice; unpack the archive with its tables again",
                      path(table), twice->text());
  }

  Result<void> read_logs() {
    std::uint32_t num_logs = 0;
    return read("log", &logs_,
                [&](TableEntry& entry) { logs_.add(entry.token("token"), num_logs++); });
  }

  [[nodiscard]] bool is_wanted(const std::string& scene) {
    return !selection_.scene_names || missing_scenes_.erase(scene) > 0;
  }

  Result<void> read_scenes() {
    if (selection_.scene_names) {
      missing_scenes_.insert(selection_.scene_names->begin(), selection_.scene_names->end());
    }
    std::vector<std::pair<std::string, Token>> found;
    auto done = read("scene", nullptr, [&](TableEntry& entry) {
      std::string name = entry.text("name");
      const Token token = entry.token("token");
      static_cast<void>(entry.reference("log_token", logs_, "log.json"));
      all_scenes_.add(token, 0);
      if (!entry.fault() && is_wanted(name)) found.emplace_back(std::move(name), token);
    });
    if (!done) return done;
    std::sort(found.begin(), found.end());
    for (auto& [name, token] : found) {
      scenes_.add(token, static_cast<std::uint32_t>(tables_.scenes.size()));
      tables_.scenes.push_back({std::move(name), {}, {}});
    }
    return check_scenes();
  }

  Result<void> check_scenes() {
    if (all_scenes_.sort() || scenes_.sort()) {
      return make_error("{} has a token twice; unpack the archive with its tables again",
                        path("scene"));
    }
    if (!missing_scenes_.empty()) {
      const auto first = std::min_element(missing_scenes_.begin(), missing_scenes_.end());
      return make_error(
          "the scene {} of the split is in no entry of {}; name the --version or the "
          "--split that fit",
          *first, path("scene"));
    }
    if (tables_.scenes.empty()) return make_error("{} has no scene to convert", path("scene"));
    return {};
  }

  // The scene's position if it is wanted; a token of no scene at all is the entry's fault.
  std::optional<std::uint32_t> wanted_scene(TableEntry& entry) {
    static_cast<void>(entry.reference("scene_token", all_scenes_, "scene.json"));
    return entry.fault() ? std::nullopt : scenes_.find(entry.token("scene_token"));
  }

  Result<void> read_samples() {
    auto done = read("sample", nullptr, [&](TableEntry& entry) {
      NuscenesSample sample;
      sample.token = entry.token("token");
      sample.timestamp_us = entry.integer("timestamp");
      const auto scene = wanted_scene(entry);
      all_samples_.add(sample.token, 0);
      if (!scene || entry.fault()) return;
      sample.scene = *scene;
      samples_.add(sample.token, static_cast<std::uint32_t>(tables_.samples.size()));
      tables_.samples.push_back(std::move(sample));
    });
    if (!done) return done;
    if (all_samples_.sort() || samples_.sort()) {
      return make_error("{} has a token twice; unpack the archive with its tables again",
                        path("sample"));
    }
    return order_samples();
  }

  Result<void> order_samples() {
    for (std::uint32_t i = 0; i < tables_.samples.size(); ++i) {
      tables_.scenes[tables_.samples[i].scene].samples.push_back(i);
    }
    for (NuscenesScene& scene : tables_.scenes) {
      if (scene.samples.empty()) {
        return make_error("{} has no sample of {}; unpack the archive with its tables again",
                          path("sample"), scene.name);
      }
      std::sort(scene.samples.begin(), scene.samples.end(), [&](auto a, auto b) {
        return tables_.samples[a].timestamp_us < tables_.samples[b].timestamp_us;
      });
    }
    return {};
  }

  Result<void> read_sensors() {
    return read("sensor", &sensors_, [&](TableEntry& entry) {
      sensors_.add(entry.token("token"), static_cast<std::uint32_t>(sensor_channels_.size()));
      sensor_channels_.push_back(channel_of(entry.text("channel")));
    });
  }

  Result<void> read_calibrations() {
    return read("calibrated_sensor", &calibrations_, [&](TableEntry& entry) {
      calibrations_.add(entry.token("token"), static_cast<std::uint32_t>(channels_.size()));
      const std::uint32_t sensor = entry.reference("sensor_token", sensors_, "sensor.json");
      const int channel = entry.fault() ? kOtherChannel : sensor_channels_[sensor];
      channels_.push_back(channel);
      Calibration calibration;
      calibration.sensor2ego = read_pose(entry);
      const bool is_camera = channel >= 0 && channel < kNumCameras;
      if (is_camera) calibration.intrinsic = entry.matrix3("camera_intrinsic");
      tables_.calibrations.push_back(calibration);
    });
  }

  static Quaternion read_rotation(TableEntry& entry) {
    const auto [w, x, y, z] = entry.numbers<4>("rotation");
    const bool is_zero = w * w + x * x + y * y + z * z == 0;
    if (is_zero) entry.reject("has a \"rotation\" of length 0; the table is damaged");
    return is_zero ? Quaternion{} : Quaternion{w, x, y, z};
  }

  static Matrix4 read_pose(TableEntry& entry) {
    return rigid_transform(read_rotation(entry), entry.numbers<3>("translation"));
  }

  // Keeps the wanted scenes' camera images and lidar key frames; their poses come later.
  Result<void> read_frames() {
    return read("sample_data", nullptr, [&](TableEntry& entry) {
      const auto calibration =
          entry.reference("calibrated_sensor_token", calibrations_, "calibrated_sensor.json");
      static_cast<void>(entry.reference("sample_token", all_samples_, "sample.json"));
      if (entry.fault()) return;
      const auto sample = samples_.find(entry.token("sample_token"));
      const int channel = channels_[calibration];
      if (!sample || channel == kOtherChannel) return;
      const bool is_key = entry.flag("is_key_frame");
      if (channel == kLidarChannel && !is_key) return;
      PendingFrame pending{{}, channel, entry.token("ego_pose_token")};
      pending.frame = read_frame(entry, channel);
      pending.frame.is_key = is_key;
      pending.frame.sample = *sample;
      pending.frame.calibration = calibration;
      if (!entry.fault()) frames_.push_back(std::move(pending));
    });
  }

  static SensorFrame read_frame(TableEntry& entry, int channel) {
    SensorFrame frame;
    frame.filename = entry.text("filename");
    frame.timestamp_us = entry.integer("timestamp");
    if (channel == kLidarChannel) return frame;
    constexpr std::int64_t kLargestJpeg = 65535;  // of a JPEG
    const std::int64_t width = entry.integer("width");
    const std::int64_t height = entry.integer("height");
    if (width < 1 || height < 1 || width > kLargestJpeg || height > kLargestJpeg) {
      entry.reject(fmt::format("has the image size {} x {}; the table is damaged", width, height));
    }
    frame.width = static_cast<int>(width);
    frame.height = static_cast<int>(height);
    return frame;
  }

  // Only the poses that kept frames name; full trainval has 2.6 million.
  Result<void> read_ego_poses() {
    std::unordered_map<Token, std::vector<std::uint32_t>, TokenHash> waiting;
    for (std::uint32_t i = 0; i < frames_.size(); ++i) waiting[frames_[i].ego_pose].push_back(i);
    auto done = read("ego_pose", nullptr, [&](TableEntry& entry) {
      const auto found = waiting.find(entry.token("token"));
      if (found == waiting.end()) return;
      const Matrix4 pose = read_pose(entry);
      for (const std::uint32_t i : found->second) frames_[i].frame.ego2global = pose;
      waiting.erase(found);
    });
    if (!done || waiting.empty()) return done;
    const std::uint32_t first = waiting.begin()->second.front();
    return make_error(
        "{}: the image or sweep {} has the \"ego_pose_token\" {}, which is in no "
        "entry of {}; the tables are incomplete or of different versions, unpack the "
        "archive with its tables again",
        path("sample_data"), frames_[first].frame.filename, frames_[first].ego_pose.text(),
        path("ego_pose"));
  }

  Result<void> read_categories() {
    return read("category", &categories_, [&](TableEntry& entry) {
      categories_.add(entry.token("token"), static_cast<std::uint32_t>(category_labels_.size()));
      category_labels_.push_back(label_of_category(entry.text("name")));
    });
  }

  Result<void> read_instances() {
    return read("instance", &instances_, [&](TableEntry& entry) {
      instances_.add(entry.token("token"), static_cast<std::uint32_t>(instance_labels_.size()));
      const auto category = entry.reference("category_token", categories_, "category.json");
      instance_labels_.push_back(entry.fault() ? -1 : category_labels_[category]);
    });
  }

  Result<void> read_annotations() {
    return read("sample_annotation", &annotations_, [&](TableEntry& entry) {
      static_cast<void>(entry.reference("sample_token", all_samples_, "sample.json"));
      if (entry.fault()) return;
      const auto sample = samples_.find(entry.token("sample_token"));
      if (!sample) return;
      const auto position = static_cast<std::uint32_t>(tables_.annotations.size());
      annotations_.add(entry.token("token"), position);
      tables_.annotations.push_back(read_annotation(entry, *sample));
      tables_.samples[*sample].annotations.push_back(position);
      links_.push_back({entry.number(), entry.token_if_any("prev"), entry.token_if_any("next")});
    });
  }

  Annotation read_annotation(TableEntry& entry, std::uint32_t sample) {
    Annotation annotation;
    annotation.sample = sample;
    annotation.instance = entry.token("instance_token");
    const auto instance = entry.reference("instance_token", instances_, "instance.json");
    if (!entry.fault()) annotation.label = instance_labels_[instance];
    annotation.center = entry.numbers<3>("translation");
    annotation.size = entry.numbers<3>("size");
    annotation.rotation = read_rotation(entry);
    annotation.num_lidar_pts = entry.integer("num_lidar_pts");
    annotation.num_radar_pts = entry.integer("num_radar_pts");
    return annotation;
  }

  // Annotations refer to each other in both directions: after all are read.
  Result<void> link_annotations() {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      Annotation& annotation = tables_.annotations[i];
      for (const auto& [token, neighbour] :
           {std::pair(links_[i].prev, &annotation.prev), {links_[i].next, &annotation.next}}) {
        if (!token) continue;
        *neighbour = annotations_.find(*token);
        if (*neighbour) continue;
        return make_error(
            "{}: entry {} has the neighbour {}, which is in no entry of the same "
            "scenes; the table is incomplete, unpack the archive with its tables "
            "again",
            path("sample_annotation"), links_[i].entry, token->text());
      }
    }
    return {};
  }

  Result<void> place_frames() {
    for (PendingFrame& pending : frames_) {
      NuscenesSample& sample = tables_.samples[pending.frame.sample];
      if (pending.channel == kLidarChannel) {
        sample.lidar = std::move(pending.frame);
      } else {
        tables_.scenes[sample.scene].images[static_cast<std::size_t>(pending.channel)].push_back(
            std::move(pending.frame));
      }
    }
    for (NuscenesScene& scene : tables_.scenes) {
      for (auto& images : scene.images) {
        std::sort(images.begin(), images.end(),
                  [](const auto& a, const auto& b) { return a.timestamp_us < b.timestamp_us; });
      }
    }
    return check_lidar();
  }

  Result<void> check_lidar() {
    for (const NuscenesSample& sample : tables_.samples) {
      if (sample.lidar) continue;
      return make_error(
          "{} has no LIDAR_TOP key frame of the sample {}; unpack the archive with "
          "its tables again",
          path("sample_data"), sample.token.text());
    }
    return {};
  }

  const TableSelection& selection_;
  const std::string folder_;
  NuscenesTables tables_;
  std::unordered_set<std::string> missing_scenes_;

  // Positions: of all entries, and of those kept where only some are.
  TokenIndex logs_, all_scenes_, scenes_, all_samples_, samples_, sensors_, calibrations_;
  TokenIndex categories_, instances_, annotations_;
  std::vector<int> sensor_channels_;  // by sensor
  std::vector<int> channels_;         // by calibration
  std::vector<int> category_labels_;
  std::vector<int> instance_labels_;
  std::vector<PendingFrame> frames_;
  std::vector<AnnotationLinks> links_;  // by annotation
};

}  // namespace

Result<NuscenesTables> read_nuscenes_tables(const TableSelection& selection) {
  return TablesReader(selection).read();
}

int label_of_category(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, int>, 14> kLabels = {
      {{"vehicle.car", 0},
       {"vehicle.truck", 1},
       {"vehicle.construction", 2},
       {"vehicle.bus.bendy", 3},
       {"vehicle.bus.rigid", 3},
       {"vehicle.trailer", 4},
       {"movable_object.barrier", 5},
       {"vehicle.motorcycle", 6},
       {"vehicle.bicycle", 7},
       {"human.pedestrian.adult", 8},
       {"human.pedestrian.child", 8},
       {"human.pedestrian.construction_worker", 8},
       {"human.pedestrian.police_officer", 8},
       {"movable_object.trafficcone", 9}}};
  const auto found = std::find_if(kLabels.begin(), kLabels.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  return found == kLabels.end() ? -1 : found->second;
}

}  // namespace hvd::petrv2
