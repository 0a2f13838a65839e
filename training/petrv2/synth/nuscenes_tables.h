// The nuScenes v1.0 tables as far as detection needs them: scenes, their samples, the camera images
// and lidar poses of the samples, and the annotated boxes, with every token resolved to a position.
//
// Lifecycle: read once, const from then on; whoever holds it owns it. Only the wanted scenes'
// entries are kept, of the sensors only the six cameras and LIDAR_TOP's key frames: full trainval
// takes about 1 GB (estimated). Order in time is that of the timestamps; `prev` and `next` are
// followed for annotations only. Thread: const, so any.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "training/petrv2/data/sample.h"
#include "training/petrv2/synth/token.h"

namespace hvd::petrv2 {

// One image, or the moment of a lidar key frame.
struct SensorFrame {
  std::string filename;  // below the data root
  std::int64_t timestamp_us = 0;
  std::uint32_t sample = 0;
  bool is_key = false;
  int width = 0;  // px; 0 for the lidar
  int height = 0;
  std::uint32_t calibration = 0;
  Matrix4 ego2global = kIdentity4;  // m, at `timestamp_us`
};

// Where a sensor sits in one log, and its lens.
struct Calibration {
  Matrix4 sensor2ego = kIdentity4;  // m
  Matrix3 intrinsic{};              // px, for the image's full size; zeros for the lidar
};

struct NuscenesSample {
  Token token;
  std::int64_t timestamp_us = 0;
  std::uint32_t scene = 0;
  std::vector<std::uint32_t> annotations;  // in table order
  std::optional<SensorFrame> lidar;
};

struct NuscenesScene {
  std::string name;
  std::vector<std::uint32_t> samples;                        // by time
  std::array<std::vector<SensorFrame>, kNumCameras> images;  // by time, key frames and sweeps
};

struct Annotation {
  Token instance;
  std::uint32_t sample = 0;
  int label = -1;    // 0..9, -1: none of the ten classes
  Vector3 center{};  // m, global frame
  Vector3 size{};    // w l h, m
  Quaternion rotation;
  std::int64_t num_lidar_pts = 0;
  std::int64_t num_radar_pts = 0;
  std::optional<std::uint32_t> prev;  // of the same instance, half a second earlier
  std::optional<std::uint32_t> next;
};

struct NuscenesTables {
  std::vector<NuscenesScene> scenes;  // by name
  std::vector<NuscenesSample> samples;
  std::vector<Annotation> annotations;
  std::vector<Calibration> calibrations;
};

// Which of DATAROOT's tables to read: those of the folder DATAROOT/VERSION, of all scenes or of
// the named ones only. A scene without samples or a sample without lidar pose is an error.
struct TableSelection {
  std::string dataroot;
  std::string version;
  std::optional<std::vector<std::string>> scene_names;
};

[[nodiscard]] Result<NuscenesTables> read_nuscenes_tables(const TableSelection& selection);

// The detection class of a category's full name ("vehicle.bus.rigid" -> 3); -1: none of the ten.
[[nodiscard]] int label_of_category(std::string_view name);

}  // namespace hvd::petrv2
