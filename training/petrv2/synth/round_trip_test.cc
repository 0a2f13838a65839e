// From made-up scenes through convert to decoded records: what the records say must be what the
// images show.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "training/formats/test_files.h"
#include "training/petrv2/data/jpeg.h"
#include "training/petrv2/data/record_set.h"
#include "training/petrv2/synth/convert.h"
#include "training/petrv2/synth/scene_painter.h"
#include "training/petrv2/synth/shots.h"
#include "training/petrv2/synth/synth.h"

namespace hvd::petrv2 {
namespace {

namespace fs = std::filesystem;

const WorldPlan kPlan{.num_scenes = 2,
                      .samples_per_scene = 3,
                      .objects_per_scene = 14,
                      .seed = 5,
                      .image = {400, 224}};

// lidar2img of one camera of a step, without augmentation.
Matrix4 lidar_to_image(const SampleRecord& sample, const StepRecord& step, std::size_t camera) {
  return multiply(pad_to_4x4(step.intrinsic[camera]),
                  multiply(inverse_rigid(step.cam2global[camera]), sample.lidar2global));
}

struct Seen {
  double u = 0;
  double v = 0;
  double depth = 0;
};
Seen look(const Matrix4& lidar2img, const Vector3& point) {
  const auto [x, y, z] = transform_point(lidar2img, point);
  return {x / z, y / z, z};
}

// The upright rectangle of the image that holds a box; nullopt if a corner is behind the camera.
struct Extent {
  double left = 1e9, right = -1e9, top = 1e9, bottom = -1e9;
};
std::optional<Extent> extent_of(const Matrix4& lidar2img, const Box& box) {
  Extent extent;
  const auto [w, l, h] = box.size;
  for (int corner = 0; corner < 8; ++corner) {
    const double x = ((corner & 1) != 0 ? l : -l) / 2;
    const double y = ((corner & 2) != 0 ? w : -w) / 2;
    const double z = ((corner & 4) != 0 ? h : -h) / 2;
    const Seen seen =
        look(lidar2img, {box.center[0] + x * std::cos(box.heading) - y * std::sin(box.heading),
                         box.center[1] + x * std::sin(box.heading) + y * std::cos(box.heading),
                         box.center[2] + z});
    if (seen.depth < 0.5) return std::nullopt;
    extent.left = std::min(extent.left, seen.u);
    extent.right = std::max(extent.right, seen.u);
    extent.top = std::min(extent.top, seen.v);
    extent.bottom = std::max(extent.bottom, seen.v);
  }
  return extent;
}

// Whether the way between two points crosses the box, or passes it closer than 0.3 m.
bool is_crossed(const Box& box, const Vector3& from, const Vector3& to) {
  const Matrix3 turn = {std::cos(box.heading),
                        -std::sin(box.heading),
                        0,
                        std::sin(box.heading),
                        std::cos(box.heading),
                        0,
                        0,
                        0,
                        1};
  const Matrix4 to_box = inverse_rigid(rigid_transform(turn, box.center));
  const Vector3 a = transform_point(to_box, from);
  const Vector3 b = transform_point(to_box, to);
  const Vector3 half = {box.size[1] / 2 + 0.3, box.size[0] / 2 + 0.3, box.size[2] / 2 + 0.3};
  double enters = 0;
  double leaves = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double low = (-half[axis] - a[axis]) / (b[axis] - a[axis]);
    const double high = (half[axis] - a[axis]) / (b[axis] - a[axis]);
    enters = std::max(enters, std::min(low, high));
    leaves = std::min(leaves, std::max(low, high));
  }
  return enters < leaves;
}

// The class whose colour is a multiple of this one, as near as JPEG keeps it; -1: grey, or none.
int class_of(const std::uint8_t* pixel) {
  const auto length = [](double r, double g, double b) { return std::sqrt(r * r + g * g + b * b); };
  const double own = length(pixel[0], pixel[1], pixel[2]);
  int best = -1;
  double best_cosine = 0.985;
  for (int label = 0; label < static_cast<int>(kClassNames.size()); ++label) {
    const auto [r, g, b] = class_colour(label);
    const double cosine =
        (r * pixel[0] + g * pixel[1] + b * pixel[2]) / (own * length(r, g, b) + 1e-9);
    if (cosine > best_cosine) {
      best_cosine = cosine;
      best = label;
    }
  }
  return best;
}

class RoundTripTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    root_ = std::make_unique<TestFolder>();
    const auto made = write_synth_dataset(kPlan, root_->path(), 2);
    ASSERT_TRUE(made) << made.error().message;
    const auto converted = convert({root_->path(), kSynthVersion, "all", *root_ / "r", 2}, nullptr);
    ASSERT_TRUE(converted) << converted.error().message;
    auto set = RecordSet::open(*root_ / "r", "all");
    ASSERT_TRUE(set) << set.error().message;
    set_ = std::make_unique<RecordSet>(std::move(*set));
  }
  static void TearDownTestSuite() {
    set_.reset();
    root_.reset();
  }

  static SampleRecord sample(std::size_t index) {
    auto record = set_->read_sample(index);
    EXPECT_TRUE(record) << record.error().message;
    return record.value_or(SampleRecord{});
  }
  static StepRecord step(std::size_t index, std::int64_t number) {
    auto record = set_->read_step(set_->samples()[index].shard, number);
    EXPECT_TRUE(record) << record.error().message;
    return record.value_or(StepRecord{});
  }

  static std::unique_ptr<TestFolder> root_;
  static std::unique_ptr<RecordSet> set_;
};
std::unique_ptr<TestFolder> RoundTripTest::root_;
std::unique_ptr<RecordSet> RoundTripTest::set_;

TEST_F(RoundTripTest, CandidatesAreNearestFirstAndTheFirstSampleHasNone) {
  ASSERT_EQ(set_->samples().size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    const SampleRecord record = sample(i);
    EXPECT_EQ(record.prev_steps.size(), i % 3 * 6) << "sample " << i;
    StepRecord newer = step(i, record.cur_step);
    EXPECT_TRUE(newer.is_key);
    EXPECT_EQ(newer.scene, record.scene);
    for (std::size_t j = 0; j < record.prev_steps.size(); ++j) {
      const StepRecord older = step(i, record.prev_steps[j]);
      EXPECT_EQ(older.scene, record.scene);
      EXPECT_EQ(older.is_key, j % 6 == 5);
      for (std::size_t camera = 0; camera < kNumCameras; ++camera) {
        EXPECT_NEAR(static_cast<double>(newer.timestamp_us[camera] - older.timestamp_us[camera]),
                    500000.0 / 6, 2);
      }
      newer = older;
    }
  }
}

TEST_F(RoundTripTest, StepsHoldTheImageFilesAsTheyAre) {
  const WorldScene scene = make_scene(kPlan, 0);
  const SampleRecord record = sample(1);
  ASSERT_EQ(record.scene, scene.name);
  const StepRecord before = step(1, record.prev_steps[1]);
  for (std::size_t camera = 0; camera < kNumCameras; ++camera) {
    const Shot shot = shot_of(scene, 4, camera);
    EXPECT_EQ(before.jpeg[camera], read_file(*root_ / shot.filename));
    EXPECT_EQ(before.timestamp_us[camera], shot.timestamp_us);
    EXPECT_EQ(before.width[camera], 400);
    EXPECT_EQ(before.height[camera], 224);
  }
}

TEST_F(RoundTripTest, BoxesMoveAsTheObjectsDo) {
  const WorldScene scene = make_scene(kPlan, 1);
  for (std::size_t i = 3; i < 6; ++i) {
    const SampleRecord record = sample(i);
    ASSERT_EQ(record.scene, scene.name);
    ASSERT_EQ(record.boxes.size(), scene.objects.size());
    const double time = 0.5 * static_cast<double>(i - 3);
    for (std::size_t j = 0; j < record.boxes.size(); ++j) {
      const Box& box = record.boxes[j].box;
      const WorldObject& object = scene.objects[j];
      EXPECT_EQ(box.label, object.label);
      const Vector3 global = transform_point(record.lidar2global, box.center);
      const Vector3 expected = object.center_at(time);
      for (std::size_t axis = 0; axis < 3; ++axis) {
        EXPECT_NEAR(global[axis], expected[axis], 1e-4);  // fp32 in the file
        EXPECT_NEAR(box.size[axis], object.size[axis], 1e-5);
      }
      // The lidar's x axis is the vehicle's right.
      const double turned = object.heading - scene.ego.heading - scene.ego.yaw_rate * time;
      EXPECT_NEAR(std::remainder(box.heading - turned - M_PI / 2, 2 * M_PI), 0, 1e-5);
      EXPECT_NEAR(box.velocity[0], object.speed * std::cos(box.heading), 1e-4);
      EXPECT_NEAR(box.velocity[1], object.speed * std::sin(box.heading), 1e-4);
    }
  }
}

// The invariant that makes the data set worth training on: where a record's matrix puts the middle
// of a box, the image shows the colour of its class, now and in earlier frames.
TEST_F(RoundTripTest, BoxCentresLandOnTheColourOfTheirClass) {
  auto decoder = JpegDecoder::create();
  ASSERT_TRUE(decoder);
  std::map<int, int> num_checked;
  std::array<int, kNumCameras> num_by_camera{};
  for (std::size_t i = 0; i < 6; ++i) {
    const SampleRecord record = sample(i);
    const StepRecord current = step(i, record.cur_step);
    for (std::size_t camera = 0; camera < kNumCameras; ++camera) {
      RgbImage image;
      ASSERT_TRUE(decoder->decode(current.jpeg[camera], image));
      const Matrix4 lidar2img = lidar_to_image(record, current, camera);
      const Vector3 eye = transform_point(inverse_rigid(record.lidar2global),
                                          transform_point(current.cam2global[camera], {0, 0, 0}));
      for (const AnnotatedBox& box : record.boxes) {
        // The camera fires up to 43 ms before the lidar: the box is where it was then.
        Box then = box.box;
        const double lead =
            1e-6 * static_cast<double>(record.timestamp_us - current.timestamp_us[camera]);
        for (std::size_t axis = 0; axis < 2; ++axis)
          then.center[axis] -= lead * then.velocity[axis];
        const auto extent = extent_of(lidar2img, then);
        const Seen middle = look(lidar2img, then.center);
        const bool is_inside = middle.u > 4 && middle.u < 396 && middle.v > 4 && middle.v < 220;
        if (!extent || !is_inside) continue;
        if (extent->right - extent->left < 8 || extent->bottom - extent->top < 8) continue;
        const bool is_hidden =
            std::any_of(record.boxes.begin(), record.boxes.end(), [&](const AnnotatedBox& other) {
              return other.instance != box.instance && is_crossed(other.box, eye, then.center);
            });
        if (is_hidden) continue;
        EXPECT_GT(box.num_lidar_pts, 0);
        const std::size_t pixel =
            static_cast<std::size_t>(middle.v) * 400 + static_cast<std::size_t>(middle.u);
        EXPECT_EQ(class_of(image.rgb.data() + pixel * 3), box.box.label)
            << record.scene << " sample " << i << " " << kCameraNames[camera] << " at " << middle.u
            << "," << middle.v << " depth " << middle.depth;
        ++num_checked[box.box.label];
        ++num_by_camera[camera];
      }
    }
  }
  int total = 0;
  for (const auto& [label, count] : num_checked) total += count;
  EXPECT_GE(num_checked.size(), 8U);
  EXPECT_GE(total, 60);
  EXPECT_THAT(num_by_camera, testing::Each(testing::Ge(3)));
}

TEST_F(RoundTripTest, PreviousFramesAgreeInTheCurrentLidarFrame) {
  auto decoder = JpegDecoder::create();
  ASSERT_TRUE(decoder);
  int num_checked = 0;
  for (const std::size_t i : {2U, 5U}) {
    const SampleRecord record = sample(i);
    const StepRecord before = step(i, record.prev_steps.back());  // a second ago
    for (std::size_t camera = 0; camera < kNumCameras; ++camera) {
      RgbImage image;
      ASSERT_TRUE(decoder->decode(before.jpeg[camera], image));
      const Matrix4 lidar2img = lidar_to_image(record, before, camera);
      for (const AnnotatedBox& box : record.boxes) {
        const bool is_standing = std::hypot(box.box.velocity[0], box.box.velocity[1]) < 1e-3;
        const auto extent = extent_of(lidar2img, box.box);
        const Seen middle = look(lidar2img, box.box.center);
        const bool is_inside = middle.u > 4 && middle.u < 396 && middle.v > 4 && middle.v < 220;
        if (!is_standing || !extent || !is_inside || middle.depth > 15) continue;
        if (extent->right - extent->left < 10 || extent->bottom - extent->top < 10) continue;
        const std::size_t pixel =
            static_cast<std::size_t>(middle.v) * 400 + static_cast<std::size_t>(middle.u);
        num_checked += class_of(image.rgb.data() + pixel * 3) == box.box.label ? 1 : 0;
      }
    }
  }
  EXPECT_GE(num_checked, 5);
}

TEST_F(RoundTripTest, HiddenAndUnseenBoxesHaveNoPoints) {
  std::size_t num_seen = 0;
  std::size_t num_boxes = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    const SampleRecord record = sample(i);
    num_boxes += record.boxes.size();
    for (const AnnotatedBox& box : record.boxes) num_seen += box.num_lidar_pts > 0 ? 1 : 0;
  }
  EXPECT_GT(num_seen, num_boxes / 2);
  EXPECT_LT(num_seen, num_boxes);
}

// Every file of a folder by its path in it.
std::map<std::string, std::string> contents_of(const std::string& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    contents[fs::relative(entry.path(), folder).string()] = read_file(entry.path().string());
  }
  return contents;
}

TEST(Synth, SameSeedSameBytesOnAnyNumberOfThreads) {
  WorldPlan plan{
      .num_scenes = 1, .samples_per_scene = 2, .objects_per_scene = 5, .image = {96, 64}};
  const TestFolder a;
  const TestFolder b;
  const TestFolder c;
  ASSERT_TRUE(write_synth_dataset(plan, a.path(), 1));
  ASSERT_TRUE(write_synth_dataset(plan, b.path(), 3));
  plan.seed = 2;
  ASSERT_TRUE(write_synth_dataset(plan, c.path(), 1));
  const auto first = contents_of(a.path());
  EXPECT_EQ(first.size(), 42 + 13 + 1U);  // images, tables, one list of scenes
  EXPECT_TRUE(first == contents_of(b.path()));
  const auto other = contents_of(c.path());
  EXPECT_EQ(other.size(), first.size());
  EXPECT_NE(other.at("v1.0-mini/ego_pose.json"), first.at("v1.0-mini/ego_pose.json"));
}

TEST(Synth, OneSampleAndNoObjectIsADataSet) {
  const TestFolder root;
  const WorldPlan plan{
      .num_scenes = 1, .samples_per_scene = 1, .objects_per_scene = 0, .image = {64, 64}};
  ASSERT_TRUE(write_synth_dataset(plan, root.path(), 1));
  const auto report = convert({root.path(), kSynthVersion, "mini_train", root / "r", {}}, nullptr);
  ASSERT_TRUE(report) << report.error().message;
  const auto set = RecordSet::open(root / "r", "mini_train");
  ASSERT_TRUE(set) << set.error().message;
  const auto record = set->read_sample(0);
  ASSERT_TRUE(record);
  EXPECT_TRUE(record->prev_steps.empty());
  EXPECT_TRUE(record->boxes.empty());
}

// Numbers of an independent evaluation of the frame's tables in fp64.
TEST(RealFrame, BoxesAndProjectionsAreThoseOfTheDataSet) {
  const char* folder = std::getenv("HVDRUN_FRAME_DIR");
  if (folder == nullptr) {
    GTEST_SKIP() << "HVDRUN_FRAME_DIR does not name the folder of the real nuScenes frame";
  }
  const TestFolder out;
  const auto report = convert({folder, "v1.0-mini", "all", out.path(), {}}, nullptr);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->num_boxes, 68U);
  EXPECT_EQ(report->num_class_boxes, 68U);
  const auto set = RecordSet::open(out.path(), "all");
  ASSERT_TRUE(set) << set.error().message;
  const auto record = set->read_sample(0);
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->sample_token, "ca9a282c9e77460f8360f564131a8af5");
  EXPECT_TRUE(record->prev_steps.empty());

  struct Row {
    std::size_t box;
    int label;
    Vector3 center;
    double heading;
    std::int64_t num_points;
  };
  const Row rows[] = {{0, 8, {18.4143843563, 59.5160245952, 0.7696345397}, 3.1241359752, 1},
                      {1, 8, {21.0021065185, 36.0611080877, -0.0261478306}, 1.5219935351, 2},
                      {2, 0, {37.3518598364, 64.3973380451, 0.4509916139}, 3.0888454178, 5},
                      {67, 5, {7.0356306283, 13.4548222078, -0.9318169082}, 3.1314139982, 27}};
  for (const Row& row : rows) {
    const AnnotatedBox& box = record->boxes[row.box];
    EXPECT_EQ(box.box.label, row.label);
    EXPECT_EQ(box.num_lidar_pts, row.num_points);
    EXPECT_NEAR(box.box.heading, row.heading, 1e-6);
    EXPECT_TRUE(std::isnan(box.box.velocity[0]));  // one frame only
    for (std::size_t axis = 0; axis < 3; ++axis) {
      EXPECT_NEAR(box.box.center[axis], row.center[axis], 1e-5);
    }
  }
  const auto step = set->read_step(set->samples()[0].shard, record->cur_step);
  ASSERT_TRUE(step) << step.error().message;
  const Seen front = look(lidar_to_image(*record, *step, 0), rows[0].center);
  EXPECT_NEAR(front.u, 1216.1753149937, 1e-3);
  EXPECT_NEAR(front.v, 495.6607268549, 1e-3);
  EXPECT_NEAR(front.depth, 59.0248670367, 1e-5);
  const Seen back = look(lidar_to_image(*record, *step, 3), record->boxes[4].box.center);
  EXPECT_NEAR(back.u, 452.3470971053, 1e-2);  // the centre is fp32 in the file
  EXPECT_NEAR(back.v, 565.2995693492, 1e-2);
}

}  // namespace
}  // namespace hvd::petrv2
