// The folder of timelines on a node, and how its files are read for the launcher.
#include "agent/timeline_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "agent/job_dir.h"
#include "agent/output_queue.h"
#include "agent/worker_spec.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;
namespace v1 = hvdrun::v1;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kId = "0123456789abcdef0123456789abcdef";

class TimelineFilesTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
  }
  std::string folder_ = fs::temp_directory_path() / "hvdrun-files-XXXXXX";
};

struct Fetched {
  std::vector<std::string> names;  // in the order of their ends
  std::map<std::string, std::string> data;
  std::map<std::string, std::string> errors;
  std::size_t most_bytes = 0;  // of a piece
};

Fetched fetch(TimelineFiles& files, std::uint64_t room) {
  Fetched fetched;
  for (int i = 0; i < 100000 && !files.is_done(); ++i) {
    const v1::OutputReply piece = files.next_piece(room);
    EXPECT_EQ(piece.files_done(), files.is_done());
    for (const v1::FileChunk& chunk : piece.files()) {
      fetched.data[chunk.name()] += chunk.data();
      fetched.most_bytes = std::max(fetched.most_bytes, chunk.data().size());
      if (!chunk.error().empty()) fetched.errors[chunk.name()] = chunk.error();
      if (chunk.eof()) fetched.names.push_back(chunk.name());
    }
  }
  EXPECT_TRUE(files.is_done());
  return fetched;
}

TEST_F(TimelineFilesTest, ComeRankByRankInPiecesThatFit) {
  const std::string large(700000, 'x');
  write("rank10.json", "ten");
  write("rank2.json", large);
  write("rank3.json", "");
  for (const std::uint64_t room : {7U, 1000U, 1U << 20U}) {
    if (room == 7) fs::resize_file(folder_ + "/rank2.json", 100);
    TimelineFiles files(folder_);
    EXPECT_EQ(files.next_piece(0).files_size(), 0) << "nothing without room";
    const Fetched fetched = fetch(files, room);
    EXPECT_THAT(fetched.names, ElementsAre("rank2.json", "rank3.json", "rank10.json"));
    EXPECT_EQ(fetched.data.at("rank2.json").size(), room == 7 ? 100 : large.size());
    EXPECT_EQ(fetched.data.at("rank10.json"), "ten");
    EXPECT_LE(fetched.most_bytes, std::min<std::uint64_t>(room, 256 << 10));
    write("rank2.json", large);
  }
}

TEST_F(TimelineFilesTest, NothingElseIsSent) {
  write("rank1.json", "one");
  write("rank1.json.new", "no");
  write("error.1.json", "no");
  write("secret", "no");
  fs::create_symlink(folder_ + "/secret", folder_ + "/rank2.json");
  fs::create_directory(folder_ + "/rank3.json");
  ASSERT_EQ(mkfifo((folder_ + "/rank4.json").c_str(), 0600), 0);
  TimelineFiles files(folder_);
  const Fetched fetched = fetch(files, 1000);
  EXPECT_EQ(fetched.data.at("rank1.json"), "one");
  EXPECT_EQ(fetched.data.at("rank2.json"), "");
  EXPECT_EQ(fetched.errors.size(), 3U);
  EXPECT_THAT(fetched.errors.at("rank4.json"), HasSubstr("no regular file"));
  EXPECT_EQ(fetched.data.count("secret"), 0U);
}

TEST_F(TimelineFilesTest, AnEmptyOrMissingFolderIsDoneAtOnce) {
  for (const std::string& folder : {folder_, folder_ + "/none", std::string()}) {
    TimelineFiles files(folder);
    EXPECT_FALSE(files.is_done());
    const v1::OutputReply piece = files.next_piece(1);
    EXPECT_TRUE(piece.files_done());
    EXPECT_EQ(piece.files_size(), 0);
  }
}

TEST_F(TimelineFilesTest, RemovingThemLeavesWhatElseTheRanksHaveWritten) {
  for (const char* name : {"rank1.json", "rank12.json", "rank2.json.new", "rank3.flight.json"}) {
    write(name, "x");
  }
  remove_timelines(folder_);
  ASSERT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
  EXPECT_TRUE(fs::exists(folder_ + "/rank3.flight.json"));
  remove_timelines(folder_ + "/none");
}

TEST_F(TimelineFilesTest, FolderFollowsFromTheJobAndStandsOnDisk) {
  EXPECT_THAT(timeline_dir_parents(5), ElementsAre("/var/tmp/hvdrun-5", "/tmp/hvdrun-5"));
  const auto path = plan_timeline_dir({folder_ + "/parent"}, kId, 7);
  ASSERT_TRUE(path);
  EXPECT_EQ(*path, folder_ + "/parent/0123456789abcdef-7-timeline");
  ASSERT_TRUE(make_job_dir(*path));
  struct stat info {};
  ASSERT_EQ(stat(path->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700U);
  write("file", "");
  const auto none = plan_timeline_dir({folder_ + "/file"}, kId, 7);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("no folder for the timeline can be made"));
}

TEST(TimelineVariables, AreTheJobsOwnAndNeverThoseOfAJobAround) {
  SpawnContext context;
  context.node_env = {{"HVDRUN_TIMELINE", "/outer"}, {"HVDRUN_TIMELINE_STEPS", "1-2"}, {"A", "b"}};
  context.job_dir = "/job";
  v1::Spawn spawn;
  spawn.add_workers();
  const auto value_of = [&](const std::string& name) -> std::string {
    const v1::ShimSpawn made = make_shim_spawns(context, spawn).front();
    for (const auto& variable : made.workers(0).env()) {
      if (variable.name() == name) return variable.value();
    }
    return "(unset)";
  };
  EXPECT_EQ(value_of("HVDRUN_TIMELINE"), "(unset)");
  EXPECT_EQ(value_of("HVDRUN_TIMELINE_STEPS"), "(unset)");
  EXPECT_EQ(value_of("A"), "b");
  context.timeline_dir = "/var/tmp/own";
  EXPECT_EQ(value_of("HVDRUN_TIMELINE"), "/var/tmp/own");
  EXPECT_EQ(value_of("HVDRUN_TIMELINE_STEPS"), "(unset)");
}

TEST(OutputQueueCredit, IsSharedWithWhatElseIsSent) {
  OutputQueue queue(Spool("/", 0), {});
  queue.add_credit(100);
  queue.spend_credit(60);
  EXPECT_EQ(queue.credit(), 40U);
  v1::LogChunk chunk;
  chunk.set_data(std::string(50, 'a'));
  queue.push(chunk);
  const v1::OutputReply batch = queue.next_batch();
  ASSERT_EQ(batch.chunks_size(), 1);
  EXPECT_EQ(batch.chunks(0).data().size(), 40U);
  EXPECT_EQ(queue.credit(), 0U);
}

}  // namespace
}  // namespace hvd
