#include "training/petrv2/synth/convert.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "training/formats/test_files.h"
#include "training/petrv2/data/record_set.h"
#include "training/petrv2/synth/synth.h"

namespace hvd::petrv2 {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

namespace fs = std::filesystem;

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  if (!fs::exists(folder)) return names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Two small scenes of two samples in a folder of their own.
class ConvertTest : public testing::Test {
 protected:
  ConvertTest() {
    const WorldPlan plan{
        .num_scenes = 2, .samples_per_scene = 2, .objects_per_scene = 3, .image = {64, 64}};
    EXPECT_TRUE(write_synth_dataset(plan, root_.path(), 1));
  }

  [[nodiscard]] ConvertRequest request(const std::string& split = "all") const {
    return {root_.path(), kSynthVersion, split, out(), {}};
  }
  [[nodiscard]] std::string out() const { return root_ / "records"; }

  [[nodiscard]] std::string first_image(const std::string& folder) const {
    return root_ / (folder + "/" + names_in(root_ / folder).front());
  }

  TestFolder root_;
};

TEST_F(ConvertTest, WritesOneShardOrAsManyAsAsked) {
  const auto report = convert(request(), nullptr);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->num_shards, 1U);
  EXPECT_EQ(report->num_scenes, 2U);
  EXPECT_EQ(report->num_samples, 4U);
  EXPECT_EQ(report->num_steps, 14U);
  EXPECT_EQ(report->num_class_boxes, report->num_boxes);
  EXPECT_THAT(names_in(out()),
              testing::ElementsAre("all-00000-of-00001.index", "all-00000-of-00001.tfrecord"));
  ConvertRequest two = request("mini_val");
  two.num_shards = 1;
  std::vector<std::size_t> done;
  const auto val = convert(two, [&](std::size_t number, std::size_t total) {
    done.push_back(number);
    EXPECT_EQ(total, 1U);
  });
  ASSERT_TRUE(val) << val.error().message;
  EXPECT_EQ(val->num_scenes, 1U);
  EXPECT_THAT(done, testing::ElementsAre(1));
  EXPECT_EQ(names_in(out()).size(), 4U);
}

TEST_F(ConvertTest, NeverSplitsAScene) {
  ConvertRequest many = request();
  many.num_shards = 2;
  ASSERT_TRUE(convert(many, nullptr));
  const auto set = RecordSet::open(out(), "all");
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->shards().size(), 2U);
  for (const Shard& shard : set->shards()) EXPECT_EQ(shard.num_samples, 2U);
  many.num_shards = 3;
  many.out = root_ / "other";
  const auto report = convert(many, nullptr);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, HasSubstr("--shards 3 is more than the 2 scenes"));
  EXPECT_EQ(report.error().code, ExitCode::kUsage);
}

TEST_F(ConvertTest, RefusesToMixWithWhatIsThere) {
  ASSERT_TRUE(convert(request(), nullptr));
  const std::string before = read_file(out() + "/all-00000-of-00001.tfrecord");
  const auto again = convert(request(), nullptr);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("already holds shards of the split all"));
  EXPECT_EQ(read_file(out() + "/all-00000-of-00001.tfrecord"), before);
}

TEST_F(ConvertTest, MissingImageIsNamedAndLeavesNoShard) {
  const std::string image = first_image("sweeps/CAM_BACK");
  const std::string kept = read_file(image);
  fs::remove(image);
  const auto report = convert(request(), nullptr);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message,
              AllOf(HasSubstr(image + " is missing"), HasSubstr("camera sweeps")));
  EXPECT_THAT(names_in(out()), testing::ElementsAre(".all.partial"));
  EXPECT_FALSE(RecordSet::open(out(), "all"));

  // What was left is in nobody's way.
  write_file(image, kept);
  ASSERT_TRUE(convert(request(), nullptr));
  EXPECT_THAT(names_in(out()), testing::Not(Contains(".all.partial")));
}

TEST_F(ConvertTest, CutImageIsNamed) {
  const std::string image = first_image("samples/CAM_FRONT");
  const std::string whole = read_file(image);
  for (const std::string& bytes : {whole.substr(0, whole.size() / 2), std::string("\xff\xd9"),
                                   std::string(), std::string(100, '\0')}) {
    write_file(image, bytes);
    const auto report = convert(request(), nullptr);
    ASSERT_FALSE(report);
    EXPECT_THAT(report.error().message, HasSubstr(image + " is no complete JPEG file"));
  }
  write_file(image, whole + std::string(3, '\0'));  // some cameras pad
  EXPECT_TRUE(convert(request(), nullptr));
}

TEST_F(ConvertTest, SampleWithoutACameraIsNamed) {
  const std::string path = root_ / "v1.0-mini/sample_data.json";
  auto entries = nlohmann::json::parse(read_file(path));
  const auto found = std::find_if(entries.begin(), entries.end(), [](const auto& entry) {
    const std::string name = entry["filename"];
    return name.starts_with("samples/CAM_FRONT_LEFT/scene-0002");
  });
  const std::string sample = (*found)["sample_token"];
  entries.erase(found);
  write_file(path, entries.dump());
  const auto report = convert(request(), nullptr);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message,
              AllOf(HasSubstr("scene-0002"), HasSubstr(sample), HasSubstr("CAM_FRONT_LEFT")));
}

TEST_F(ConvertTest, UnusableTargetIsNamed) {
  ConvertRequest bad = request();
  bad.out = "/dev/null/records";
  const auto report = convert(bad, nullptr);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, HasSubstr("/dev/null/records: cannot make the folder"));
}

TEST_F(ConvertTest, SynthRefusesAFolderWithADataSet) {
  const auto again = write_synth_dataset({}, root_.path(), 1);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("already holds a data set"));
}

}  // namespace
}  // namespace hvd::petrv2
