// The options about timelines, and the check of the file that is written at the end.
#include "launcher/timeline_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "launcher/options.h"
#include "launcher/output_file.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Entry = std::pair<std::string, std::string>;

class TimelineOptionsTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { fs::remove_all(folder_); }
  static Result<Options> parse(std::vector<std::string> words, const EnvList& environment = {}) {
    words.insert(words.begin(), "hvdrun");
    words.emplace_back("true");
    return parse_options(words, environment);
  }
  std::string folder_ = fs::temp_directory_path() / "hvdrun-output-XXXXXX";
};

TEST_F(TimelineOptionsTest, AreOffByDefaultAndTellTheWorkersNothing) {
  const auto options = parse({});
  ASSERT_TRUE(options);
  EXPECT_FALSE(options->timeline.is_wanted());
  EXPECT_THAT(timeline_env(options->timeline), IsEmpty());
}

TEST_F(TimelineOptionsTest, TellTheWorkersTheirBounds) {
  const auto options = parse({"--timeline-filename", folder_ + "/t.json", "--timeline-steps",
                              "100-199", "--timeline-max-mb", "2", "--timeline-mark-cycles"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->timeline.path, folder_ + "/t.json");
  EXPECT_THAT(timeline_env(options->timeline),
              ElementsAre(Entry("HVDRUN_TIMELINE_MAX_BYTES", "2097152"),
                          Entry("HOROVOD_TIMELINE", folder_ + "/t.json"),
                          Entry("HVDRUN_TIMELINE_STEPS", "100-199"),
                          Entry("HOROVOD_TIMELINE_MARK_CYCLES", "1")));
  const auto plain =
      parse({"--timeline-filename", folder_ + "/t.json", "--no-timeline-mark-cycles"});
  ASSERT_TRUE(plain);
  EXPECT_THAT(timeline_env(plain->timeline),
              ElementsAre(Entry("HVDRUN_TIMELINE_MAX_BYTES", "268435456"),
                          Entry("HOROVOD_TIMELINE", folder_ + "/t.json"),
                          Entry("HOROVOD_TIMELINE_MARK_CYCLES", "0")));
  const auto one = parse({"--timeline-filename", folder_ + "/t.json", "--timeline-steps", "7"});
  ASSERT_TRUE(one);
  EXPECT_THAT(timeline_env(one->timeline), Contains(Entry("HVDRUN_TIMELINE_STEPS", "7-7")));
  EXPECT_TRUE(fs::is_empty(folder_)) << "the check leaves nothing";
}

TEST_F(TimelineOptionsTest, FileComesFromTheEnvironmentUnlessGiven) {
  const EnvList both = {{"HOROVOD_TIMELINE", folder_ + "/h"},
                        {"HVDRUN_TIMELINE_FILENAME", folder_ + "/o"}};
  EXPECT_EQ(parse({}, both)->timeline.path, folder_ + "/o");
  EXPECT_EQ(parse({}, {both.front()})->timeline.path, folder_ + "/h");
  EXPECT_EQ(parse({"--timeline-filename", folder_ + "/f"}, both)->timeline.path, folder_ + "/f");
  EXPECT_FALSE(parse({}, {{"HOROVOD_TIMELINE", "DYNAMIC"}})->timeline.is_wanted());
  const auto wrong = parse({}, {{"HOROVOD_TIMELINE", folder_}});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message,
              HasSubstr("HOROVOD_TIMELINE: --timeline-filename \"" + folder_ + "\": it is a f"));
}

TEST_F(TimelineOptionsTest, WithoutAFileTheOthersAreNoted) {
  const auto options = parse({"--timeline-steps", "1-2"});
  ASSERT_TRUE(options);
  EXPECT_THAT(options->notes, ElementsAre(HasSubstr("no effect without --timeline-filename")));
}

TEST_F(TimelineOptionsTest, WrongValuesNameTheRemedy) {
  for (const char* steps : {"", "-", "5-", "-5", "9-3", "1-2-3", "a-b", "1.5"}) {
    const auto options = parse({"--timeline-steps", steps});
    ASSERT_FALSE(options) << steps;
    EXPECT_EQ(options.error().code, ExitCode::kUsage);
    EXPECT_THAT(options.error().message, HasSubstr("write the first and the last step"));
  }
  for (const char* megabytes : {"0", "1.5", "1g", "9999999"}) {
    EXPECT_FALSE(parse({"--timeline-max-mb", megabytes})) << megabytes;
  }
}

TEST_F(TimelineOptionsTest, PathIsAbsoluteAndFollowsLinks) {
  const fs::path old_folder = fs::current_path();
  fs::current_path(folder_);
  const auto relative = check_output_file("t.json", "--x");
  fs::current_path(old_folder);
  ASSERT_TRUE(relative);
  EXPECT_EQ(*relative, fs::canonical(folder_).string() + "/t.json");
  std::ofstream(folder_ + "/real") << "old";
  fs::create_symlink(folder_ + "/real", folder_ + "/link");
  fs::create_symlink(folder_ + "/dangling", folder_ + "/loose");
  EXPECT_EQ(*check_output_file(folder_ + "/link", "--x"),
            fs::canonical(folder_ + "/real").string());
  const auto loose = check_output_file(folder_ + "/loose", "--x");
  ASSERT_FALSE(loose);
  EXPECT_THAT(loose.error().message, HasSubstr("it is a link to what does not exist"));
}

TEST_F(TimelineOptionsTest, PathsThatCannotBeWrittenAreRefused) {
  std::ofstream(folder_ + "/file") << "x";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "no file is named"},
      {folder_, "it is a folder; name a file in it"},
      {folder_ + "/", "it is a folder; name a file in it"},
      {folder_ + "/new/", "it is a folder; name a file in it"},
      {folder_ + "/none/t.json", "there is no folder"},
      {folder_ + "/file/t.json", "there is no folder"},
      {"/dev/null", "it is no file; name another"},
      {"/proc/t.json", "no file can be made in \"/proc\""},
  };
  for (const auto& [path, reason] : cases) {
    const auto checked = check_output_file(path, "--x");
    ASSERT_FALSE(checked) << path;
    EXPECT_EQ(checked.error().code, ExitCode::kUsage);
    EXPECT_THAT(checked.error().message, HasSubstr("--x \"" + path + "\": "));
    EXPECT_THAT(checked.error().message, HasSubstr(reason));
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace hvd
