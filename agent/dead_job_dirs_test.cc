#include "agent/dead_job_dirs.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <filesystem>

#include "agent/shim/folder_lock.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;

TEST(JobDigits, StandInTheNamesOfJobFoldersOnly) {
  EXPECT_EQ(job_digits("0123abcd-0-89abcdef"), "0123abcd");
  EXPECT_EQ(job_digits("0123abcd-1023-89abcdef"), "0123abcd");
  for (const char* name :
       {"", "staged", "0123abcd", "0123abcd-0", "0123abcd-0-", "0123abcd--89abcdef",
        "0123abcd-x-89abcdef", "0123abcd-0-89abcde", "0123abcx-0-89abcdef",
        "0123abcd0123abcd-0-timeline", "0123abcd-0-89abcdeg", "123abcd-0-89abcdef"}) {
    EXPECT_EQ(job_digits(name), "") << name;
  }
}

class DeadJobDirs : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(root_.data()), nullptr); }
  void TearDown() override { fs::remove_all(root_); }

  // Unchanged for an hour.
  std::string make(const std::string& name) const {
    const std::string path = root_ + "/" + name;
    fs::create_directories(path + "/below");
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
    return path;
  }

  std::string root_ = fs::temp_directory_path() / "hvdrun-dead-XXXXXX";
};

TEST_F(DeadJobDirs, GoUnlessSomebodyHoldsOrNeedsThem) {
  const std::string dead = make("00000001-0-89abcdef");
  const std::string held = make("00000002-0-89abcdef");
  const std::string kept = make("00000003-0-89abcdef");
  const std::string young = make("00000004-0-89abcdef");
  const std::string other = make("staged");
  fs::create_symlink(other, root_ + "/00000005-0-89abcdef");
  fs::last_write_time(young, fs::file_time_type::clock::now());
  const UniqueFd lock = lock_folder(held, LOCK_SH);
  ASSERT_TRUE(lock.is_valid());
  remove_dead_job_dirs({"/nowhere", root_}, {"00000003" + std::string(24, 'f')});
  EXPECT_FALSE(fs::exists(dead));
  for (const std::string& path : {held, kept, young, other})
    EXPECT_TRUE(fs::exists(path + "/below"));
}

TEST_F(DeadJobDirs, TwoMayHoldOne) {
  const std::string held = make("00000002-0-89abcdef");
  UniqueFd agent = lock_folder(held, LOCK_SH);
  UniqueFd shim = lock_folder(held, LOCK_SH);
  agent.reset();
  remove_dead_job_dirs({root_}, {});
  EXPECT_TRUE(fs::exists(held));
  shim.reset();
  remove_dead_job_dirs({root_}, {});
  EXPECT_FALSE(fs::exists(held));
}

}  // namespace
}  // namespace hvd
