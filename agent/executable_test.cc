#include "agent/executable.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "agent/preflight.h"
#include "tests/support/temporary_folder.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;
namespace v1 = hvdrun::v1;

using Executable = TemporaryFolder;

TEST_F(Executable, FindsTheFirstOnPath) {
  fs::create_directories(path_ + "/a");
  fs::create_directories(path_ + "/b");
  write("b/tool", 0755);
  const auto found = find_executable("tool", path_ + "/a:" + path_ + "/b", "/");
  EXPECT_EQ(found.path, path_ + "/b/tool");
  EXPECT_EQ(found.errno_value, 0);
}

TEST_F(Executable, TellsAbsentFromNotExecutable) {
  EXPECT_EQ(find_executable("no-such-tool", path_, "/").errno_value, ENOENT);
  write("data", 0644);
  EXPECT_EQ(find_executable("data", path_, "/").errno_value, EACCES);
  EXPECT_EQ(find_executable("", path_, "/").errno_value, ENOENT);
}

TEST_F(Executable, GoesOnPastAFileThatMayNotBeExecuted) {
  fs::create_directories(path_ + "/a");
  write("a/tool", 0644);
  write("tool", 0755);
  EXPECT_EQ(find_executable("tool", path_ + "/a:" + path_, "/").path, path_ + "/tool");
}

TEST_F(Executable, ResolvesAPathWithASlashAgainstTheFolder) {
  write("run.sh", 0755);
  EXPECT_EQ(find_executable("./run.sh", "/bin", path_).path, path_ + "/./run.sh");
  EXPECT_EQ(find_executable("./sh", "/bin", path_).errno_value, ENOENT);
}

TEST_F(Executable, EmptyPathEntryIsTheFolder) {
  write("tool", 0755);
  EXPECT_EQ(find_executable("tool", "/nowhere::", path_).path, path_ + "/tool");
}

TEST_F(Executable, FolderIsNotExecutable) {
  fs::create_directories(path_ + "/dir");
  EXPECT_EQ(find_executable("./dir", "/bin", path_).errno_value, EACCES);
}

TEST_F(Executable, ChecksWorkingFolder) {
  EXPECT_EQ(check_folder(path_), 0);
  EXPECT_EQ(check_folder(path_ + "/none"), ENOENT);
  EXPECT_EQ(check_folder(write("file", 0644)), ENOTDIR);
}

TEST_F(Executable, PreflightUsesTheWorkersPathAndCountsGpus) {
  write("tool", 0755);
  fs::create_directories(path_ + "/gpus/0000:01:00.0");
  fs::create_directories(path_ + "/gpus/0000:02:00.0");
  v1::Hello hello;
  hello.add_argv("tool");
  hello.set_cwd(path_);
  PreflightPaths paths;
  paths.gpus = path_ + "/gpus";
  paths.rdma = path_ + "/rdma";
  const v1::HelloReply reply = preflight(hello, {{"PATH", path_}}, paths);
  EXPECT_EQ(reply.executable(), path_ + "/tool");
  EXPECT_TRUE(reply.cwd_ok());
  EXPECT_EQ(reply.num_gpus(), 2u);
  EXPECT_FALSE(reply.has_rdma());
  fs::create_directories(paths.rdma + "/mlx5_0");
  EXPECT_TRUE(preflight(hello, {{"PATH", path_}}, paths).has_rdma());
  EXPECT_FALSE(reply.boot_id().empty());
  EXPECT_NE(reply.network_namespace(), 0u);
  EXPECT_GT(reply.interfaces_size(), 0);
  EXPECT_EQ(count_gpus(path_ + "/none"), 0u);
}

}  // namespace
}  // namespace hvd
