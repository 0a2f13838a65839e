#include "agent/reap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <nlohmann/json.hpp>

namespace hvd {
namespace {

constexpr std::string_view kReapedJob = "0123456789abcdef0123456789abcdef";

AgentArguments arguments() {
  return parse_arguments({"reap", "--job", kReapedJob, "--node", "3"}).value();
}

TEST(ReapLine, IsOneLineOfJsonThatNamesJobAndNode) {
  const std::string line = reap_line(arguments(), {true, 2, {}, {}});
  EXPECT_THAT(line, testing::Not(testing::HasSubstr("\n")));
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["job"], kReapedJob);
  EXPECT_EQ(json["node"], 3);
  EXPECT_EQ(json["clean"], true);
  EXPECT_EQ(json["killed"], 2);
  EXPECT_TRUE(json["survivors"].empty());
}

TEST(ReapLine, SaysWhyNothingIsProved) {
  ReapResult result;
  result.doubt = "nobody knows";
  const auto json = nlohmann::json::parse(reap_line(arguments(), result));
  EXPECT_EQ(json["clean"], false);
  EXPECT_EQ(json["doubt"], "nobody knows");
}

TEST(ReapLine, DescribesSurvivorsWhateverTheirCommandHolds) {
  hvdrun::v1::Survivor survivor;
  survivor.set_pid(42);
  survivor.set_uid(1000);
  survivor.set_state("D");
  survivor.set_wchan("nfs_wait");
  survivor.set_command("a\xff\nb");
  survivor.add_listening_ports(8080);
  const std::string line = reap_line(arguments(), {false, 0, {survivor}, {}});
  EXPECT_THAT(line, testing::Not(testing::HasSubstr("\n")));
  const auto json = nlohmann::json::parse(line);
  const auto& told = json["survivors"].at(0);
  EXPECT_EQ(told["pid"], 42);
  EXPECT_EQ(told["uid"], 1000);
  EXPECT_EQ(told["state"], "D");
  EXPECT_EQ(told["wchan"], "nfs_wait");
  EXPECT_EQ(told["ports"].at(0), 8080);
}

TEST(JobDirsOf, FindsThoseOfTheJobOnThisNodeOnly) {
  std::string folder = std::filesystem::temp_directory_path() / "hvdrun-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  for (const char* name : {"/01234567-3-0", "/01234567-3-89abcdef", "/01234567-4-0", "/other"}) {
    std::filesystem::create_directory(folder + name);
  }
  EXPECT_THAT(
      job_dirs_of({"/nowhere", folder}, kReapedJob, 3),
      testing::UnorderedElementsAre(folder + "/01234567-3-0", folder + "/01234567-3-89abcdef"));
  std::filesystem::remove_all(folder);
}

TEST(IsJobDirOf, NeedsTheJobsNameInAFolderOfOurs) {
  EXPECT_TRUE(is_job_dir_of("/tmp/hvdrun-0/01234567-3-89abcdef", kReapedJob, 3));
  EXPECT_TRUE(is_job_dir_of("/run/user/7/hvdrun/01234567-3-0", kReapedJob, 3));
  for (const char* path :
       {"", "/", "/01234567-3-0", "/tmp/01234567-3-0", "/tmp/hvdrun-0/01234567-31-0",
        "/tmp/hvdrun-0/76543210-3-0", "tmp/hvdrun-0/01234567-3-0", "/tmp/hvdrun-0/x/01234567-3-0",
        "/tmp/hvdrun-0/../hvdrun/01234567-3-0"}) {
    EXPECT_FALSE(is_job_dir_of(path, kReapedJob, 3)) << path;
  }
}

}  // namespace
}  // namespace hvd
