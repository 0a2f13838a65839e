// Files that a launcher stages on this node: what is refused, asked for, kept and found again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "agent/stage_cache.h"
#include "agent/stage_entries.h"
#include "agent/stage_intake.h"
#include "base/sha256.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;
namespace v1 = hvdrun::v1;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Entry = v1::StageEntry;

Entry folder(const std::string& path) {
  Entry entry;
  entry.set_path(path);
  entry.set_kind(Entry::KIND_FOLDER);
  entry.set_mode(0755);
  return entry;
}

Entry link_to(const std::string& path, const std::string& target) {
  Entry entry;
  entry.set_path(path);
  entry.set_kind(Entry::KIND_LINK);
  entry.set_target(target);
  return entry;
}

Entry file(const std::string& path, const std::string& content, std::uint32_t mode = 0644) {
  Sha256 sum;
  sum.update(content);
  Entry entry;
  entry.set_path(path);
  entry.set_kind(Entry::KIND_FILE);
  entry.set_mode(mode);
  entry.set_size(content.size());
  entry.set_sha256(sum.finish());
  return entry;
}

TEST(StageEntries, OnlyPlainPathsInFoldersNamedBefore) {
  Entry no_sum = file("a", "a");
  no_sum.set_sha256("short");
  const std::vector<std::pair<std::vector<Entry>, bool>> cases = {
      {{}, true},
      {{folder("a"), file("a/b", "x"), link_to("c", "/etc")}, true},
      {{file("/etc/passwd", "x")}, false},
      {{file("../a", "x")}, false},
      {{folder("a"), file("a/../b", "x")}, false},
      {{folder("a"), file("a//b", "x")}, false},
      {{folder("a"), file("a/", "x")}, false},
      {{file(".", "x")}, false},
      {{file("", "x")}, false},
      {{file(std::string("a\0b", 3), "x")}, false},
      {{file("a/b", "x"), folder("a")}, false},
      {{link_to("a", "/etc"), file("a/b", "x")}, false},
      {{file("a", "x"), file("a/b", "x")}, false},
      {{file("a", "x"), file("a", "x")}, false},
      {{link_to("a", "")}, false},
      {{no_sum}, false},
      {{Entry()}, false},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(!check_stage_entries(cases[i].first).has_value(), cases[i].second) << i;
  }
}

std::string content_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class Intake : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(root_.data()), nullptr); }
  void TearDown() override { fs::remove_all(root_); }

  // A new folder that is filled from the same cache.
  void begin(const std::vector<Entry>& entries) {
    folder_ = root_ + "/job" + std::to_string(num_jobs_++);
    fs::create_directory(folder_);
    needed_.reset();
    end_.reset();
    StageIntake::Handlers handlers;
    handlers.on_need = [this](const v1::StageNeed& need) {
      needed_.emplace(need.entries().begin(), need.entries().end());
    };
    handlers.on_done = [this](const std::string& error) {
      EXPECT_FALSE(end_) << "told twice";
      end_ = error;
    };
    intake_.emplace(loop_, folder_, StageCache(root_ + "/cache"), std::move(handlers));
    v1::StageRequest request;
    for (const Entry& entry : entries) *request.add_entries() = entry;
    request.set_is_last(true);
    intake_->take(std::move(request));
    run();
  }
  void send(std::uint32_t entry, const std::string& data) {
    v1::StageRequest request;
    request.mutable_data()->set_entry(entry);
    request.mutable_data()->set_data(data);
    intake_->take(std::move(request));
    run();
  }
  void run() {
    loop_.restart();
    loop_.run();
  }

  std::string root_ = fs::temp_directory_path() / "hvdrun-intake-XXXXXX";
  Loop loop_;
  std::string folder_;
  int num_jobs_ = 0;
  std::optional<StageIntake> intake_;
  std::optional<std::vector<std::uint32_t>> needed_;
  std::optional<std::string> end_;
};

TEST_F(Intake, AsksForContentOnceAndFindsItInTheNextJob) {
  const std::string large(9U << 20U, 'l');
  const std::vector<Entry> entries = {folder("src"), file("src/run", "echo", 0755),
                                      file("src/empty", ""), file("large", large),
                                      link_to("src/link", "../large")};
  begin(entries);
  ASSERT_TRUE(needed_);
  EXPECT_THAT(*needed_, ElementsAre(1, 3));
  EXPECT_FALSE(end_);
  send(1, "ec");
  send(1, "ho");
  send(3, large);
  ASSERT_EQ(end_, "");
  EXPECT_EQ(content_of(folder_ + "/src/run"), "echo");
  EXPECT_EQ(fs::status(folder_ + "/src/run").permissions(), fs::perms(0755));
  EXPECT_EQ(content_of(folder_ + "/src/empty"), "");
  EXPECT_EQ(fs::read_symlink(folder_ + "/src/link"), "../large");

  begin(entries);
  EXPECT_THAT(*needed_, IsEmpty());
  ASSERT_EQ(end_, "");
  EXPECT_EQ(content_of(folder_ + "/large"), large);
  EXPECT_EQ(fs::hard_link_count(folder_ + "/large"), 1U) << "ranks may write to it";
}

TEST_F(Intake, DamagedCacheIsNotBelieved) {
  const std::vector<Entry> entries = {file("a", "right")};
  begin(entries);
  send(0, "right");
  ASSERT_EQ(end_, "");
  const auto kept = fs::directory_iterator(root_ + "/cache")->path();
  for (const char* damage : {"wrong", "rig"}) {
    std::ofstream(kept, std::ios::binary) << damage;
    begin(entries);
    EXPECT_THAT(*needed_, ElementsAre(0)) << damage;
    send(0, "right");
    EXPECT_EQ(end_, "") << damage;
    EXPECT_EQ(content_of(folder_ + "/a"), "right");
  }
}

TEST_F(Intake, WrongContentIsAnErrorAndNotKept) {
  begin({file("a", "right")});
  send(0, "wrong");
  ASSERT_TRUE(end_);
  EXPECT_THAT(*end_, HasSubstr("a has changed since hvdrun has read it"));
  EXPECT_TRUE(fs::is_empty(root_ + "/cache"));
}

TEST_F(Intake, RefusesWhatWasNotAskedFor) {
  const std::vector<Entry> entries = {file("a", "aa"), file("b", "bb")};
  const std::vector<std::pair<std::uint32_t, std::string>> wrong = {{1, "b"}, {7, "x"}, {0, "aaa"}};
  for (const auto& [entry, data] : wrong) {
    begin(entries);
    send(entry, data);
    ASSERT_TRUE(end_) << entry;
    EXPECT_THAT(*end_, HasSubstr("the launcher sent"));
    send(0, "aa");  // what comes later changes nothing
  }
  begin({folder("/etc")});
  EXPECT_THAT(end_.value_or(""), HasSubstr("list of files is wrong"));
}

TEST_F(Intake, NeverWritesThroughWhatStandsThere) {
  std::ofstream(root_ + "/target") << "mine";
  const std::vector<Entry> entries = {file("a", "new")};
  begin(entries);
  fs::create_symlink(root_ + "/target", folder_ + "/a");
  send(0, "new");
  EXPECT_THAT(end_.value_or(""), HasSubstr("File exists"));
  EXPECT_EQ(content_of(root_ + "/target"), "mine");
}

TEST(StageCache, DropsWhatWasNotUsedForLongest) {
  std::string root = fs::temp_directory_path() / "hvdrun-cache-XXXXXX";
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  const StageCache cache(root);
  std::vector<std::string> sums;
  for (int i = 0; i < 3; ++i) {
    sums.push_back(file("x", std::to_string(i)).sha256());
    const UniqueFd made = cache.make(1000);
    ASSERT_EQ(ftruncate(made.get(), 1000), 0);
    cache.keep(made.get(), sums.back());
    const auto path = root + "/" + to_hex(sums.back());
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(3 - i));
  }
  EXPECT_TRUE(cache.find(sums[0]).is_valid());  // and is the youngest now
  cache.trim(2000);
  EXPECT_TRUE(cache.find(sums[0]).is_valid());
  EXPECT_FALSE(cache.find(sums[1]).is_valid());
  EXPECT_TRUE(cache.find(sums[2]).is_valid());
  fs::remove_all(root);
}

TEST(StageCache, WithoutAFolderKeepsNothing) {
  const StageCache cache("");
  EXPECT_FALSE(cache.find("x").is_valid());
  EXPECT_FALSE(cache.make(1).is_valid());
}

}  // namespace
}  // namespace hvd
