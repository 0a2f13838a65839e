#include "launcher/report_options.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "launcher/options.h"

namespace hvd {
namespace {

using testing::HasSubstr;

Result<Options> parse(std::vector<std::string> words) {
  words.insert(words.begin(), "hvdrun");
  words.emplace_back("true");
  return parse_options(words, {});
}

std::string error_of(const std::vector<std::string>& words) {
  const auto options = parse(words);
  EXPECT_FALSE(options);
  return options ? "" : options.error().message;
}

class RecordOptions : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_ = std::filesystem::temp_directory_path() / "hvdrun_records_XXXXXX";
};

TEST_F(RecordOptions, TakeFilesAndTheStandardOutputAndWriteNothingYet) {
  const auto options = parse({"--report", folder_ + "/a", "--events", folder_ + "/b"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->records.report, folder_ + "/a");
  EXPECT_EQ(options->records.events, folder_ + "/b");
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  EXPECT_EQ(parse({"--report", "-"})->records.report, "-");
  EXPECT_TRUE(parse({"--report", folder_ + "/a", "--events", "-"}));
}

TEST_F(RecordOptions, EventsMayGoToAPipeAndAReportMayNot) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(parse({"--events", pipe})->records.events, pipe);
  EXPECT_THAT(error_of({"--report", pipe}), HasSubstr("it is no file"));
}

TEST_F(RecordOptions, WhatCannotBeWrittenIsSaidBeforeAnythingIsStarted) {
  EXPECT_THAT(error_of({"--report", folder_ + "/none/a"}), HasSubstr("there is no folder"));
  EXPECT_THAT(error_of({"--events", folder_}), HasSubstr("it is a folder"));
  for (const std::string& place : {std::string("-"), folder_ + "/a"}) {
    EXPECT_THAT(error_of({"--report", place, "--events", place}),
                HasSubstr("give each a file of its own"));
  }
}

}  // namespace
}  // namespace hvd
