#include "agent/shim/job_dir.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "agent/shim/exit_report.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;

class JobDirTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/hvdrun-job-dir-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root = name;
    fs::create_directories(root / "job" / "a" / "b");
    fs::create_directories(root / "other");
    std::ofstream(root / "job" / "a" / "b" / "error") << "boom";
    std::ofstream(root / "other" / "precious") << "secret";
  }
  void TearDown() override { fs::remove_all(root); }
  [[nodiscard]] std::string job() const { return root / "job"; }

  fs::path root;
};

TEST_F(JobDirTest, IsRemovedWithAllThatIsInIt) {
  EXPECT_TRUE(remove_job_dir(job()));
  EXPECT_FALSE(fs::exists(job()));
  EXPECT_TRUE(remove_job_dir(job())) << "gone is gone";
}

TEST_F(JobDirTest, LinksAreRemovedAndNotFollowed) {
  fs::create_symlink(root / "other", root / "job" / "link");
  fs::create_symlink(root / "other" / "precious", root / "job" / "a" / "file");
  EXPECT_TRUE(remove_job_dir(job()));
  EXPECT_TRUE(fs::exists(root / "other" / "precious"));
}

TEST_F(JobDirTest, ALinkInItsPlaceIsLeftAlone) {
  fs::create_symlink(root / "other", root / "fake");
  EXPECT_FALSE(remove_job_dir(root / "fake"));
  EXPECT_TRUE(fs::exists(root / "other" / "precious"));
}

TEST_F(JobDirTest, OnlyAbsolutePathsOfOwnDirectoriesAreTouched) {
  EXPECT_FALSE(remove_job_dir(""));
  EXPECT_FALSE(remove_job_dir("/"));
  EXPECT_FALSE(remove_job_dir("relative"));
  EXPECT_FALSE(remove_job_dir(root / "other" / "precious"));
  if (geteuid() != 0) GTEST_SKIP() << "giving a folder to another user needs root";
  ASSERT_EQ(chown(job().c_str(), 12345, 12345), 0);
  EXPECT_FALSE(remove_job_dir(job()));
  EXPECT_TRUE(fs::exists(root / "job" / "a" / "b" / "error"));
}

TEST_F(JobDirTest, ErrorFileIsReadOnlyBelowTheFolderAndThroughNoLink) {
  EXPECT_EQ(read_below(job(), job() + "/a/b/error"), "boom");
  EXPECT_EQ(read_below(job(), job() + "/a//./b/error"), "boom");
  EXPECT_EQ(read_below(job(), job() + "/../other/precious"), "");
  EXPECT_EQ(read_below(job(), (root / "other" / "precious").string()), "");
  EXPECT_EQ(read_below(job(), job() + "x"), "");
  EXPECT_EQ(read_below(job(), job() + "/a/b"), "") << "a directory";
  EXPECT_EQ(read_below(job(), job() + "/none"), "");
  EXPECT_EQ(read_below("", "/etc/hostname"), "");
  fs::create_symlink(root / "other", root / "job" / "link");
  fs::create_symlink(root / "other" / "precious", root / "job" / "file");
  EXPECT_EQ(read_below(job(), job() + "/link/precious"), "");
  EXPECT_EQ(read_below(job(), job() + "/file"), "");
  ASSERT_EQ(mkfifo((job() + "/fifo").c_str(), 0600), 0);
  EXPECT_EQ(read_below(job(), job() + "/fifo"), "") << "and does not block";
}

TEST_F(JobDirTest, ErrorFileIsCutAt64KiB) {
  std::ofstream(root / "job" / "big") << std::string(100'000, 'x');
  EXPECT_EQ(read_below(job(), job() + "/big").size(), 65536U);
}

}  // namespace
}  // namespace hvd
