#include "training/petrv2/synth/scene_split.h"

#include <gmock/gmock.h>

#include "training/formats/test_files.h"

namespace hvd::petrv2 {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;

TEST(SceneSplit, AllNeedsNoList) {
  const auto split = read_scene_split("/nowhere", "all");
  ASSERT_TRUE(split);
  EXPECT_EQ(split->name, "all");
  EXPECT_FALSE(split->scene_names);
}

TEST(SceneSplit, OfficialNamesAreReadFromTheDataRoot) {
  const TestFolder root;
  std::filesystem::create_directory(root / "splits");
  write_file(root / "splits/mini_val.txt", "# official\nscene-0103\r\n\n  scene-0916  # day\n");
  const auto split = read_scene_split(root.path(), "mini_val");
  ASSERT_TRUE(split) << split.error().message;
  EXPECT_EQ(split->name, "mini_val");
  EXPECT_THAT(split->scene_names, Optional(ElementsAre("scene-0103", "scene-0916")));
}

TEST(SceneSplit, MissingOfficialListSaysWhereItBelongs) {
  const TestFolder root;
  for (const std::string name : {"train", "val", "mini_train", "mini_val"}) {
    const auto split = read_scene_split(root.path(), name);
    ASSERT_FALSE(split);
    EXPECT_THAT(split.error().message, HasSubstr(root / "splits/" + name + ".txt is missing"));
    EXPECT_THAT(split.error().message, HasSubstr("--split all"));
  }
}

TEST(SceneSplit, AnyOtherWordIsAFile) {
  const TestFolder root;
  write_file(root / "night and rain.txt", "scene-0001\n");
  const auto split = read_scene_split("/nowhere", root / "night and rain.txt");
  ASSERT_TRUE(split) << split.error().message;
  EXPECT_EQ(split->name, "night_and_rain");
  const auto missing = read_scene_split("/nowhere", root / "no.txt");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("nor a file of scene names"));
}

TEST(SceneSplit, EmptyAndRepeatedListsAreErrors) {
  const auto empty = parse_scene_names("# nothing\n\n", "a.txt");
  ASSERT_FALSE(empty);
  EXPECT_THAT(empty.error().message, HasSubstr("a.txt names no scene"));
  const auto twice = parse_scene_names("scene-0001\nscene-0002\nscene-0001", "a.txt");
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().message, HasSubstr("a.txt, line 3: the scene scene-0001 is listed"));
}

}  // namespace
}  // namespace hvd::petrv2
