#include "launcher/rank_files.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace hvd {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using testing::HasSubstr;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class RankFilesTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(dir_.data()), nullptr); }
  void TearDown() override { fs::remove_all(dir_); }

  bool flush(RankFiles& files) {
    bool done = false;
    loop_.restart();
    boost::asio::co_spawn(
        loop_,
        [&]() -> Task<> {
          done = co_await files.flush(std::chrono::steady_clock::now() + seconds(20));
        },
        boost::asio::detached);
    loop_.run();
    return done;
  }
  void tell(const std::string& sentence) { told_.push_back(sentence); }

  std::string dir_ = fs::temp_directory_path() / "hvdrun-rank-files-XXXXXX";
  Loop loop_;
  std::vector<std::string> told_;
};

TEST(RankFolder, IsAsWideAsTheLargestRank) {
  EXPECT_EQ(rank_folder(0, 1), "rank.0");
  EXPECT_EQ(rank_folder(9, 10), "rank.9");
  EXPECT_EQ(rank_folder(0, 11), "rank.00");
  EXPECT_EQ(rank_folder(10, 11), "rank.10");
  EXPECT_EQ(rank_folder(7, 1000), "rank.007");
  EXPECT_EQ(rank_folder(7, 1001), "rank.0007");
}

TEST_F(RankFilesTest, HaveEachByteOfTheirRankAndStream) {
  ASSERT_TRUE(make_rank_files(dir_ + "/a/b", 2, true));
  RankFiles files(loop_, dir_ + "/a/b", 2, [this](const auto& text) { tell(text); });
  int num_written = 0;
  files.submit({{0, false, "one\n"}, {1, true, std::string("\0\xff", 2)}, {0, false, "two"}},
               [&] { ++num_written; });
  files.submit({{1, false, "\n"}}, [&] { ++num_written; });
  EXPECT_TRUE(flush(files));
  EXPECT_EQ(num_written, 2);
  EXPECT_EQ(text_of(dir_ + "/a/b/rank.0/stdout"), "one\ntwo");
  EXPECT_EQ(text_of(dir_ + "/a/b/rank.0/stderr"), "");
  EXPECT_EQ(text_of(dir_ + "/a/b/rank.1/stdout"), "\n");
  EXPECT_EQ(text_of(dir_ + "/a/b/rank.1/stderr"), std::string("\0\xff", 2));
  EXPECT_THAT(told_, testing::IsEmpty());
}

TEST_F(RankFilesTest, ReplaceWhatStoodThereUnlessTheJobGoesOn) {
  ASSERT_TRUE(make_rank_files(dir_, 1, true));
  std::ofstream(dir_ + "/rank.0/stdout") << "earlier";
  ASSERT_TRUE(make_rank_files(dir_, 1, false));
  EXPECT_EQ(text_of(dir_ + "/rank.0/stdout"), "earlier");
  {
    RankFiles files(loop_, dir_, 1, {});
    files.submit({{0, false, " later"}}, {});
    EXPECT_TRUE(flush(files));
  }
  EXPECT_EQ(text_of(dir_ + "/rank.0/stdout"), "earlier later");
  ASSERT_TRUE(make_rank_files(dir_, 1, true));
  EXPECT_EQ(text_of(dir_ + "/rank.0/stdout"), "");
}

TEST_F(RankFilesTest, MoreFilesThanMayBeOpenAtOnce) {
  constexpr std::uint32_t kRanks = 200;
  ASSERT_TRUE(make_rank_files(dir_, kRanks, true));
  RankFiles files(loop_, dir_, kRanks, [this](const auto& text) { tell(text); });
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) files.submit({{rank, true, "x"}}, {});
  }
  EXPECT_TRUE(flush(files));
  EXPECT_EQ(text_of(dir_ + "/rank.000/stderr"), "xx");
  EXPECT_EQ(text_of(dir_ + "/rank.199/stderr"), "xx");
}

TEST_F(RankFilesTest, APlaceThatCannotBeWrittenIsAnErrorOfUsage) {
  std::ofstream(dir_ + "/file") << "x";
  ASSERT_EQ(::mkfifo((dir_ + "/fifo").c_str(), 0600), 0);
  fs::create_directories(dir_ + "/taken/rank.0/stderr");
  fs::create_directories(dir_ + "/pipe/rank.0");
  fs::rename(dir_ + "/fifo", dir_ + "/pipe/rank.0/stdout");
  for (const char* name : {"/file", "/file/below", "/taken", "/pipe"}) {
    const auto made = make_rank_files(dir_ + name, 1, true);
    ASSERT_FALSE(made) << name;
    EXPECT_EQ(made.error().code, ExitCode::kUsage);
    EXPECT_THAT(made.error().message, HasSubstr("--output-filename: "));
    EXPECT_THAT(made.error().message, HasSubstr(dir_ + name));
  }
}

TEST_F(RankFilesTest, AFullDiskIsToldOnceAndTheRestGoesOn) {
  ASSERT_TRUE(make_rank_files(dir_, 2, true));
  for (const char* name : {"/rank.0/stdout", "/rank.0/stderr"}) {
    fs::remove(dir_ + name);
    fs::create_symlink("/dev/full", dir_ + name);
  }
  RankFiles files(loop_, dir_, 2, [this](const auto& text) { tell(text); });
  int num_written = 0;
  for (int i = 0; i < 3; ++i) {
    files.submit({{0, false, "lost"}, {0, true, "lost"}, {1, false, "kept"}},
                 [&] { ++num_written; });
  }
  EXPECT_TRUE(flush(files));
  EXPECT_EQ(num_written, 3) << "nobody waits for what is lost";
  EXPECT_THAT(told_, testing::ElementsAre(HasSubstr("No space left on device")));
  EXPECT_EQ(text_of(dir_ + "/rank.1/stdout"), "keptkeptkept");
}

TEST_F(RankFilesTest, NothingIsCalledWhenTheyHaveGone) {
  ASSERT_TRUE(make_rank_files(dir_, 1, true));
  bool was_called = false;
  {
    RankFiles files(loop_, dir_, 1, {});
    files.submit({{0, false, "x"}}, [&] { was_called = true; });
  }
  loop_.restart();
  loop_.run_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(was_called);
}

}  // namespace
}  // namespace hvd
