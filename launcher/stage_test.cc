// What --stage sends: which files under which names, and their content in pieces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/sha256.h"
#include "launcher/stage_sender.h"
#include "launcher/stage_source.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using Entry = v1::StageEntry;

class Stage : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(mkdtemp(root_.data()), nullptr);
    root_ = fs::canonical(root_);
    fs::create_directories(root_ + "/work/src");
    fs::create_directories(root_ + "/other");
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ + "/" + name, std::ios::binary) << text;
  }
  [[nodiscard]] Result<StageSource> read(const std::vector<std::string>& paths) const {
    return read_stage(paths, root_ + "/work");
  }
  [[nodiscard]] std::string error_of(const std::vector<std::string>& paths) const {
    const auto source = read(paths);
    EXPECT_FALSE(source);
    if (source) return "";
    EXPECT_EQ(source.error().code, ExitCode::kUsage);
    return source.error().message;
  }

  std::string root_ = fs::temp_directory_path() / "hvdrun-stage-XXXXXX";
};

std::vector<std::string> places(const StageSource& source) {
  std::vector<std::string> result;
  for (const Entry& entry : source.entries) result.push_back(entry.path());
  return result;
}

TEST(StagedPlace, KeepsWhatIsBelowTheWorkingDirectory) {
  const std::map<std::string, std::string> cases = {
      {".", ""},        {"./", ""},           {"/a/b", ""},      {"src", "src"},
      {"src/", "src"},  {"./src/x", "src/x"}, {"src/../y", "y"}, {"/a/b/src", "src"},
      {"..", "a"},      {"../c", "c"},        {"/data/d/", "d"}, {"../b/e", "e"},
      {"../bb/f", "f"},
  };
  for (const auto& [path, place] : cases) EXPECT_EQ(staged_place(path, "/a/b"), place) << path;
}

TEST_F(Stage, FolderHoldsAllBelowItInTheOrderOfNames) {
  write("work/train.sh", "#!/bin/sh\n");
  write("work/src/b", "bb");
  write("work/src/a", "");
  fs::create_symlink("b", root_ + "/work/src/link");
  fs::permissions(root_ + "/work/train.sh", fs::perms(0755));
  const auto source = read({"."});
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_THAT(places(*source), ElementsAre("src", "src/a", "src/b", "src/link", "train.sh"));
  EXPECT_EQ(source->entries[0].kind(), Entry::KIND_FOLDER);
  EXPECT_EQ(source->entries[2].size(), 2U);
  EXPECT_EQ(source->entries[2].sha256(), *sha256_of_file(root_ + "/work/src/b"));
  EXPECT_EQ(source->entries[3].target(), "b");
  EXPECT_EQ(source->entries[4].mode(), 0755U);
  EXPECT_EQ(source->num_files, 3U);
  EXPECT_EQ(source->num_bytes, 12U);
}

TEST_F(Stage, FoldersOnTheWayAreMadeAndOverlapsAreOne) {
  write("work/src/a", "a");
  write("other/data", "d");
  const auto source = read({"src/a", "src", root_ + "/other/data", "src/a"});
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_THAT(places(*source), ElementsAre("src", "src/a", "data"));
  EXPECT_EQ(source->sources[0], root_ + "/work/src");
}

TEST_F(Stage, TwoFilesInOnePlaceAreRefused) {
  write("work/data", "1");
  write("other/data", "2");
  EXPECT_THAT(error_of({"data", "../other/data"}), HasSubstr("stands in the same place"));
  write("other/src", "no folder");
  EXPECT_THAT(error_of({"src", "../other/src"}), HasSubstr("stands in the same place"));
  EXPECT_THAT(error_of({"../other/src", "src"}), HasSubstr("stands in the same place"));
}

TEST_F(Stage, WhatCannotBeReadIsNamed) {
  EXPECT_THAT(error_of({"missing"}), HasSubstr("--stage \"missing\": No such file"));
  EXPECT_THAT(error_of({""}), HasSubstr("no file or folder is named"));
}

TEST_F(Stage, PipesAreLeftOutWithANote) {
  ASSERT_EQ(mkfifo((root_ + "/work/src/pipe").c_str(), 0600), 0);
  const auto source = read({"src"});
  ASSERT_TRUE(source);
  EXPECT_THAT(places(*source), ElementsAre("src"));
  EXPECT_THAT(source->notes, ElementsAre(HasSubstr("src/pipe")));
}

// What a node would have got: content by position.
std::map<std::uint32_t, std::string> send_all(StageSender& sender) {
  std::map<std::uint32_t, std::string> content;
  while (true) {
    const auto piece = sender.next();
    EXPECT_TRUE(piece) << piece.error().message;
    if (!piece || !*piece) return content;
    content[(*piece)->data().entry()] += (*piece)->data().data();
  }
}

TEST_F(Stage, ContentComesFileByFileAsItWasAskedFor) {
  const std::string large(700000, 'x');
  write("work/src/a", large);
  write("work/src/b", "bb");
  const auto source = read({"src"});
  ASSERT_TRUE(source);
  StageSender sender(*source);
  v1::StageNeed need;
  need.add_entries(2);
  need.add_entries(1);
  ASSERT_TRUE(sender.need(need));
  EXPECT_EQ(send_all(sender), (std::map<std::uint32_t, std::string>{{1, large}, {2, "bb"}}));
  EXPECT_EQ(sender.num_bytes_sent(), large.size() + 2);
}

TEST_F(Stage, ANeedOfWhatWasNotNamedIsAnError) {
  write("work/src/empty", "");
  const auto source = read({"src"});
  ASSERT_TRUE(source);
  for (const std::uint32_t entry : {0U, 1U, 2U}) {  // a folder, an empty file, nothing
    StageSender sender(*source);
    v1::StageNeed need;
    need.add_entries(entry);
    EXPECT_FALSE(sender.need(need)) << entry;
  }
}

TEST_F(Stage, AFileThatShrinksMeanwhileIsToldByName) {
  write("work/src/a", "0123456789");
  const auto source = read({"src"});
  ASSERT_TRUE(source);
  write("work/src/a", "0");
  StageSender sender(*source);
  v1::StageNeed need;
  need.add_entries(1);
  ASSERT_TRUE(sender.need(need));
  const auto piece = sender.next();
  ASSERT_FALSE(piece);
  EXPECT_THAT(piece.error().message, HasSubstr("src/a\": it has changed"));
}

TEST_F(Stage, ManyEntriesTakeSeveralRequests) {
  for (int i = 0; i < 6000; ++i) write("work/src/" + std::string(100, 'n') + std::to_string(i), "");
  const auto source = read({"src"});
  ASSERT_TRUE(source);
  const auto requests = entry_requests(*source);
  ASSERT_GT(requests.size(), 1U);
  int num_entries = 0;
  for (const v1::StageRequest& request : requests) {
    num_entries += request.entries_size();
    EXPECT_LT(request.ByteSizeLong(), 1U << 20U);
    EXPECT_EQ(request.is_last(), &request == &requests.back());
  }
  EXPECT_EQ(num_entries, 6001);
}

}  // namespace
}  // namespace hvd
