#include "launcher/report_options.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/parsed_options.h"

namespace hvd {
namespace {

using testing::HasSubstr;

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

TEST_F(RecordOptions, TheStandardOutputHasOtherNamesToo) {
  for (const char* name : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}) {
    EXPECT_EQ(parse({"--report", name})->records.report, "-");
    EXPECT_EQ(parse({"--events", name})->records.events, "-");
    EXPECT_THAT(error_of({"--report", "-", "--events", name}), HasSubstr("both name"));
  }
}

TEST_F(RecordOptions, OneFileInTwoSpellingsIsRefused) {
  namespace fs = std::filesystem;
  std::ofstream(folder_ + "/old") << "x";
  fs::create_hard_link(folder_ + "/old", folder_ + "/hard");
  fs::create_symlink("old", folder_ + "/soft");
  fs::create_directory_symlink(".", folder_ + "/here");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"/new", "/./new"}, {"/new", "/here/new"}, {"//new", "/here/././new"},
      {"/old", "/hard"},  {"/old", "/soft"},     {"/here/old", "/hard"}};
  for (const auto& [a, b] : cases) {
    for (const auto& [first, second] :
         {std::pair("--report", "--events"), std::pair("--events", "--report"),
          std::pair("--report", "--timeline-filename"),
          std::pair("--events", "--timeline-filename")}) {
      EXPECT_THAT(error_of({first, folder_ + a, second, folder_ + b}),
                  HasSubstr("give each a file of its own"))
          << a << " " << b;
    }
  }
  EXPECT_TRUE(parse({"--report", folder_ + "/a", "--events", folder_ + "/b", "--timeline-filename",
                     folder_ + "/c"}));
}

TEST_F(RecordOptions, WhereOurOutputGoesNothingIsReplaced) {
  const std::string log = folder_ + "/log";
  const int before = ::dup(STDERR_FILENO);
  ASSERT_NE(::freopen(log.c_str(), "w", stderr), nullptr);
  const auto report = parse({"--report", log});
  const auto events = parse({"--events", "/dev/stderr"});
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, HasSubstr("hvdrun's own output goes there"));
  ASSERT_FALSE(events);
  EXPECT_THAT(events.error().message, HasSubstr("hvdrun's own output goes there"));
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
