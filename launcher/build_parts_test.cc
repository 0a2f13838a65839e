#include "launcher/build_parts.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace hvd {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::StartsWith;

std::string own_bytes() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(NeededLibraries, AreThoseOfTheFile) {
  EXPECT_THAT(needed_libraries(own_bytes()), Contains(StartsWith("libc.so")));
}

TEST(NeededLibraries, OfWhatIsNoProgramOrOnlyAPartOfOneThereAreNone) {
  const std::string bytes = own_bytes();
  for (const std::size_t size : {std::size_t{0}, std::size_t{4}, std::size_t{63}, std::size_t{64},
                                 bytes.size() / 2, bytes.size() - 1}) {
    EXPECT_THAT(needed_libraries(std::string_view(bytes).substr(0, size)), IsEmpty()) << size;
  }
  EXPECT_THAT(needed_libraries(std::string(1000, 'x')), IsEmpty());
}

class BuildPartsTest : public testing::Test {
 protected:
  BuildPartsTest() { std::filesystem::create_directories(root_ / "bin"); }
  ~BuildPartsTest() override { std::filesystem::remove_all(root_); }
  BuildInfo found() {
    BuildInfo build;
    find_build_parts((root_ / "bin").string(), build);
    return build;
  }

  const std::filesystem::path root_ =
      std::filesystem::path(testing::TempDir()) / ("build_parts_" + std::to_string(::getpid()));
};

TEST_F(BuildPartsTest, WhatIsNotThereIsNotMarked) {
  const BuildInfo build = found();
  EXPECT_FALSE(build.has_trainer || build.has_tcp || build.has_nccl);
}

TEST_F(BuildPartsTest, TheTrainerIsAProgramBesideIt) {
  std::ofstream(root_ / "bin" / "petrv2") << "x";
  EXPECT_FALSE(found().has_trainer) << "not executable";
  std::filesystem::permissions(root_ / "bin" / "petrv2", std::filesystem::perms::owner_all);
  EXPECT_TRUE(found().has_trainer);
}

TEST_F(BuildPartsTest, ALibraryThatNeedsNoNcclHasTcpAlone) {
  std::filesystem::create_directories(root_ / "lib");
  std::filesystem::copy_file("/proc/self/exe", root_ / "lib" / "libhvdrun.so");
  EXPECT_TRUE(found().has_tcp);
  EXPECT_FALSE(found().has_nccl);
}

TEST_F(BuildPartsTest, NcclIsThereIfTheLibraryNeedsIt) {
  std::string bytes = own_bytes();
  const std::size_t at = bytes.find(std::string("\0libc.so.6\0", 11));
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at + 1, 9, "libnccl.s");
  std::ofstream(root_ / "bin" / "libhvdrun.so", std::ios::binary) << bytes;
  EXPECT_FALSE(found().has_nccl) << "another name";
  const std::size_t other = bytes.find(std::string("libstdc++.so.6\0", 15));
  ASSERT_NE(other, std::string::npos);
  bytes.replace(other, 14, std::string("libnccl.so.2\0\0", 14));
  std::ofstream(root_ / "bin" / "libhvdrun.so", std::ios::binary) << bytes;
  EXPECT_TRUE(found().has_nccl);
}

}  // namespace
}  // namespace hvd
