#include "training/petrv2/synth/nuscenes_tables.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "training/formats/test_files.h"
#include "training/petrv2/synth/shots.h"
#include "training/petrv2/synth/synth_tables.h"

namespace hvd::petrv2 {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kNoToken = "0123456789abcdef0123456789abcdef";

// The tables of two made-up scenes of three samples and four objects; no images.
class NuscenesTablesTest : public testing::Test {
 protected:
  NuscenesTablesTest() {
    std::filesystem::create_directory(root_ / "v1.0-mini");
    std::vector<SceneCoverage> coverage;
    for (std::size_t i = 0; i < plan_.num_scenes; ++i) {
      scenes_.push_back(make_scene(plan_, i));
      coverage.emplace_back(plan_.samples_per_scene,
                            std::vector<Coverage>(scenes_.back().objects.size(), {400, 500}));
    }
    EXPECT_TRUE(write_synth_tables(scenes_, plan_, coverage, root_ / "v1.0-mini"));
  }

  [[nodiscard]] std::string path(const std::string& table) const {
    return root_ / "v1.0-mini/" + table + ".json";
  }

  void edit(const std::string& table, const std::function<void(json&)>& change) const {
    json entries = json::parse(read_file(path(table)));
    change(entries);
    write_file(path(table), entries.dump());
  }

  [[nodiscard]] Result<NuscenesTables> read(
      std::optional<std::vector<std::string>> scene_names = std::nullopt) const {
    return read_nuscenes_tables({root_.path(), "v1.0-mini", std::move(scene_names)});
  }

  const WorldPlan plan_{.num_scenes = 2, .samples_per_scene = 3, .objects_per_scene = 4};
  std::vector<WorldScene> scenes_;
  TestFolder root_;
};

TEST_F(NuscenesTablesTest, ResolvesEveryReference) {
  const auto tables = read();
  ASSERT_TRUE(tables) << tables.error().message;
  ASSERT_EQ(tables->scenes.size(), 2U);
  EXPECT_EQ(tables->samples.size(), 6U);
  EXPECT_EQ(tables->calibrations.size(), 14U);
  std::size_t num_objects = 0;
  for (const WorldScene& scene : scenes_) num_objects += scene.objects.size();
  EXPECT_EQ(tables->annotations.size(), 3 * num_objects);

  const NuscenesScene& scene = tables->scenes[1];
  EXPECT_EQ(scene.name, "scene-0002");
  ASSERT_EQ(scene.samples.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const NuscenesSample& sample = tables->samples[scene.samples[i]];
    EXPECT_EQ(sample.timestamp_us, sample_time_us(scenes_[1], i));
    ASSERT_TRUE(sample.lidar);
    EXPECT_EQ(sample.lidar->timestamp_us, sample.timestamp_us);
    EXPECT_EQ(sample.annotations.size(), scenes_[1].objects.size());
  }
  for (std::size_t camera = 0; camera < kNumCameras; ++camera) {
    ASSERT_EQ(scene.images[camera].size(), 13U);
    const SensorFrame& frame = scene.images[camera][7];
    const Shot shot = shot_of(scenes_[1], 7, camera);
    EXPECT_EQ(frame.filename, shot.filename);
    EXPECT_EQ(frame.timestamp_us, shot.timestamp_us);
    EXPECT_FALSE(frame.is_key);
    EXPECT_EQ(frame.width, 800);
    const Calibration& calibration = tables->calibrations[frame.calibration];
    EXPECT_EQ(calibration.intrinsic, scenes_[1].rig[camera].intrinsic);
    const Matrix4 expected = camera_to_global(scenes_[1], camera, shot.time);
    const Matrix4 found = multiply(frame.ego2global, calibration.sensor2ego);
    for (std::size_t i = 0; i < 16; ++i) EXPECT_NEAR(found[i], expected[i], 1e-9);
  }
}

TEST_F(NuscenesTablesTest, LinksAnnotationsOfAnInstance) {
  const auto tables = read();
  ASSERT_TRUE(tables);
  const Annotation& middle = tables->annotations[1];
  EXPECT_EQ(middle.prev, 0U);
  EXPECT_EQ(middle.next, 2U);
  EXPECT_FALSE(tables->annotations[0].prev);
  EXPECT_FALSE(tables->annotations[2].next);
  EXPECT_EQ(middle.instance, tables->annotations[0].instance);
  EXPECT_EQ(middle.label, scenes_[0].objects[0].label);
  EXPECT_EQ(middle.num_lidar_pts, 40);  // 400 of 800 x 450 pixels, a quarter of the nominal ones
}

TEST_F(NuscenesTablesTest, KeepsNamedScenesOnly) {
  const auto tables = read(std::vector<std::string>{"scene-0002"});
  ASSERT_TRUE(tables) << tables.error().message;
  ASSERT_EQ(tables->scenes.size(), 1U);
  EXPECT_EQ(tables->samples.size(), 3U);
  EXPECT_EQ(tables->annotations.size(), 3 * scenes_[1].objects.size());
  const auto missing = read(std::vector<std::string>{"scene-0002", "scene-0916"});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("scene-0916 of the split is in no entry of"));
}

TEST_F(NuscenesTablesTest, OrderInTheTableDoesNotMatter) {
  const auto tables = read();
  for (const char* table : {"sample", "sample_data", "ego_pose", "sample_annotation", "scene"}) {
    edit(table, [](json& entries) { std::reverse(entries.begin(), entries.end()); });
  }
  const auto reversed = read();
  ASSERT_TRUE(tables && reversed) << reversed.error().message;
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(reversed->scenes[i].name, tables->scenes[i].name);
    for (std::size_t j = 0; j < 13; ++j) {
      EXPECT_EQ(reversed->scenes[i].images[2][j].filename, tables->scenes[i].images[2][j].filename);
    }
  }
}

TEST_F(NuscenesTablesTest, MissingFileIsNamed) {
  for (const std::string table :
       {"log", "scene", "sample", "sensor", "calibrated_sensor", "sample_data", "ego_pose",
        "category", "instance", "sample_annotation"}) {
    const std::string kept = read_file(path(table));
    std::filesystem::remove(path(table));
    const auto tables = read();
    ASSERT_FALSE(tables) << table;
    EXPECT_THAT(tables.error().message, HasSubstr(path(table) + " is missing; unpack"));
    write_file(path(table), kept);
  }
  EXPECT_TRUE(read());
}

struct Damage {
  std::string table;
  std::size_t entry;
  std::string key;
  json value;  // discarded: the key is taken away
  std::string expected;
};

TEST_F(NuscenesTablesTest, DamagedEntryIsNamed) {
  const json gone(json::value_t::discarded);
  const std::vector<Damage> damages = {
      {"scene", 1, "name", gone, "entry 1 has no \"name\""},
      {"scene", 1, "log_token", kNoToken, "which is in no entry of log.json"},
      {"sample", 4, "timestamp", gone, "entry 4 has no \"timestamp\""},
      {"sample", 4, "timestamp", "noon", "entry 4 has a \"timestamp\" that is no whole number"},
      {"sample", 4, "scene_token", kNoToken, "which is in no entry of scene.json"},
      {"sample", 4, "token", "abc", "entry 4 has a \"token\" of other than 32 hex digits"},
      {"sensor", 0, "channel", 7, "entry 0 has a \"channel\" that is no text"},
      {"calibrated_sensor", 2, "sensor_token", kNoToken, "which is in no entry of sensor.json"},
      {"calibrated_sensor", 2, "camera_intrinsic", json::array(), "that is no 3 x 3 matrix"},
      {"calibrated_sensor", 2, "rotation", {1, 0, 0}, "\"rotation\" that is no list of 4 numbers"},
      {"calibrated_sensor", 2, "rotation", {0, 0, 0, 0}, "entry 2 has a \"rotation\" of length 0"},
      {"sample_data", 70, "sample_token", kNoToken, "which is in no entry of sample.json"},
      {"sample_data", 70, "calibrated_sensor_token", kNoToken, "entry of calibrated_sensor.json"},
      {"sample_data", 70, "ego_pose_token", kNoToken, "in no entry of"},
      {"sample_data", 70, "ego_pose_token", "", "entry 70 has an empty \"ego_pose_token\""},
      {"sample_data", 70, "is_key_frame", 1, "that is neither true nor false"},
      {"sample_data", 70, "height", 0, "entry 70 has the image size 800 x 0"},
      {"ego_pose", 70, "translation", {1, nullptr, 0}, "\"translation\" that is no list of 3"},
      {"category", 3, "name", gone, "entry 3 has no \"name\""},
      {"instance", 2, "category_token", kNoToken, "which is in no entry of category.json"},
      {"sample_annotation", 5, "sample_token", kNoToken, "which is in no entry of sample.json"},
      {"sample_annotation", 5, "instance_token", kNoToken, "in no entry of instance.json"},
      {"sample_annotation", 5, "prev", kNoToken, "entry 5 has the neighbour 0123456789abcdef"},
      {"sample_annotation", 5, "size", gone, "entry 5 has no \"size\""},
      {"sample_annotation", 5, "num_lidar_pts", 1.5, "that is no whole number"}};
  for (const Damage& damage : damages) {
    const std::string kept = read_file(path(damage.table));
    edit(damage.table, [&](json& entries) {
      json& entry = entries[damage.entry];
      if (damage.value.is_discarded()) {
        entry.erase(damage.key);
      } else {
        entry[damage.key] = damage.value;
      }
    });
    const auto tables = read();
    ASSERT_FALSE(tables) << damage.expected;
    EXPECT_THAT(tables.error().message,
                AllOf(HasSubstr(path(damage.table)), HasSubstr(damage.expected)));
    write_file(path(damage.table), kept);
  }
  EXPECT_TRUE(read());
}

TEST_F(NuscenesTablesTest, DamagedFileIsNamed) {
  const std::string whole = read_file(path("sample"));
  const std::pair<std::string, std::string> rows[] = {
      {whole.substr(0, whole.size() / 2), "is no JSON from byte"},
      {"", "is no JSON from byte"},
      {"{}", "is no list of entries"},
      {"7", "is no list of entries"},
      {"[7]", "entry 0 is no object"},
      {"[[]]", "entry 0 is no object"},
      {"[]", "has no sample of scene-0001"}};
  for (const auto& [text, expected] : rows) {
    write_file(path("sample"), text);
    const auto tables = read();
    ASSERT_FALSE(tables) << text;
    EXPECT_THAT(tables.error().message, AllOf(HasSubstr(path("sample")), HasSubstr(expected)));
  }
}

TEST_F(NuscenesTablesTest, RepeatedTokenIsNamed) {
  std::string token;
  edit("instance", [&](json& entries) {
    token = entries[0]["token"];
    entries[1]["token"] = token;
  });
  const auto tables = read();
  ASSERT_FALSE(tables);
  EXPECT_THAT(tables.error().message,
              AllOf(HasSubstr(path("instance")), HasSubstr("has the token " + token + " twice")));
}

TEST_F(NuscenesTablesTest, SampleWithoutLidarIsNamed) {
  std::string sample;
  edit("sample_data", [&](json& entries) {
    const auto lidar = std::find_if(entries.begin(), entries.end(),
                                    [](const json& entry) { return entry["fileformat"] == "pcd"; });
    sample = (*lidar)["sample_token"];
    entries.erase(lidar);
  });
  const auto tables = read();
  ASSERT_FALSE(tables);
  EXPECT_THAT(tables.error().message, HasSubstr("no LIDAR_TOP key frame of the sample " + sample));
}

TEST(Token, KeepsItsDigits) {
  const auto token = parse_token(kNoToken);
  ASSERT_TRUE(token);
  EXPECT_EQ(token->text(), kNoToken);
  EXPECT_FALSE(parse_token("0123456789ABCDEF0123456789ABCDEF"));
  EXPECT_FALSE(parse_token("0123456789abcdef0123456789abcde"));
  EXPECT_FALSE(parse_token("0123456789abcdef0123456789abcdeg"));
}

}  // namespace
}  // namespace hvd::petrv2
