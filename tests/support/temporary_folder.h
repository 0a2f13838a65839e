// A folder that goes with the test.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace hvd {

class TemporaryFolder : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(path_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(path_); }
  // A shell script with nothing in it; its path.
  std::string write(const std::string& name, mode_t mode) {
    const std::string path = path_ + "/" + name;
    std::ofstream(path) << "#!/bin/sh\n";
    chmod(path.c_str(), mode);
    return path;
  }
  std::string path_ = "/tmp/hvdrun-test-XXXXXX";
};

}  // namespace hvd
