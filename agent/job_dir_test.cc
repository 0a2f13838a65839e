#include "agent/job_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/support/temporary_folder.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using JobDir = TemporaryFolder;
constexpr const char* kJobId = "0123456789abcdef0123456789abcdef";

TEST_F(JobDir, IsFreshPrivateAndNamed) {
  const std::string parent = path_ + "/hvdrun";
  const auto first = plan_job_dir({parent}, kJobId, 7);
  const auto second = plan_job_dir({parent}, kJobId, 7);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(fs::exists(*first)) << "the shim is told first";
  ASSERT_TRUE(make_job_dir(*first));
  EXPECT_FALSE(make_job_dir(*first)) << "never somebody else's";
  EXPECT_NE(*first, *second);
  EXPECT_THAT(*first, HasSubstr("/01234567-7-"));
  struct stat info {};
  ASSERT_EQ(stat(first->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
}

TEST_F(JobDir, RefusesALinkAFileAndAnOpenFolder) {
  fs::create_directories(path_ + "/real");
  chmod((path_ + "/real").c_str(), 0700);
  fs::create_directory_symlink(path_ + "/real", path_ + "/link");
  EXPECT_FALSE(plan_job_dir({path_ + "/link"}, kJobId, 0));
  const auto file = plan_job_dir({write("file", 0600)}, kJobId, 0);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr("is not a folder"));
  chmod((path_ + "/real").c_str(), 0755);
  const auto open = plan_job_dir({path_ + "/real"}, kJobId, 0);
  ASSERT_FALSE(open);
  EXPECT_THAT(open.error().message, HasSubstr("open to others"));
}

TEST_F(JobDir, TakesTheNextParentIfOneIsUnusable) {
  const std::string good = path_ + "/good";
  const std::string long_name = path_ + "/" + std::string(90, 'x');
  const auto made = plan_job_dir({write("file", 0600), long_name, good}, kJobId, 1);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->substr(0, good.size()), good);
  EXPECT_LT(rendezvous_path(*made).size(), 108u);
}

TEST(JobDirParents, RuntimeFolderFirst) {
  EXPECT_THAT(job_dir_parents("/run/user/5", 5),
              ElementsAre("/run/user/5/hvdrun", "/tmp/hvdrun-5", "/var/tmp/hvdrun-5"));
  EXPECT_THAT(job_dir_parents("", 5), ElementsAre("/tmp/hvdrun-5", "/var/tmp/hvdrun-5"));
  EXPECT_THAT(job_dir_parents("relative", 5), ElementsAre("/tmp/hvdrun-5", "/var/tmp/hvdrun-5"));
}

}  // namespace
}  // namespace hvd
