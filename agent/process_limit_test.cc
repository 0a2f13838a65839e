#include "agent/process_limit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace hvd {
namespace {

class ProcessLimit : public TemporaryFolder {
 protected:
  void cgroup(const std::string& path, const std::string& most, int there) {
    const std::string folder = path_ + path;
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/pids.max") << most << "\n";
    std::ofstream(folder + "/pids.current") << there << "\n";
  }
};

TEST_F(ProcessLimit, NamesTheInnermostCgroupThatIsFull) {
  cgroup("/a.slice", "64", 63);
  cgroup("/a.slice/x.service", "max", 60);
  EXPECT_EQ(full_pids_cgroup("0::/a.slice/x.service/job\n", path_),
            "pids.max of /a.slice is 64, and 63 are there");
  cgroup("/a.slice", "640", 63);
  EXPECT_EQ(full_pids_cgroup("0::/a.slice/x.service\n", path_), "");
}

TEST_F(ProcessLimit, KnowsTheFirstVersionToo) {
  cgroup("/pids/user", "20", 20);
  EXPECT_EQ(full_pids_cgroup("8:cpu:/user\n7:pids:/user\n0::/\n", path_),
            "pids.max of /user is 20, and 20 are there");
  EXPECT_EQ(full_pids_cgroup("nonsense\n::\n", path_), "");
}

}  // namespace
}  // namespace hvd
