#include "launcher/timeline/timeline_merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

namespace hvd {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::json;

class TimelineMerge : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { fs::remove_all(folder_); }

  TimelineSpool make_spool() const {
    auto spool = TimelineSpool::open(folder_);
    EXPECT_TRUE(spool);
    return std::move(*spool);
  }
  MergeTarget target() const { return {folder_ + "/merged.json", 0640}; }
  Result<MergedTimeline> merge(const std::vector<MergeSource>& sources, Nanos job_start = {}) {
    return merge_timelines(sources, job_start, target(), is_cancelled_);
  }
  Json merged() const {
    std::ifstream file(target().path);
    return Json::parse(file, nullptr, false);
  }

  std::string folder_ = fs::temp_directory_path() / "hvdrun-merge-XXXXXX";
  std::atomic<bool> is_cancelled_ = false;
};

// A rank's file that began at `start` on its node, with one event each second from then on.
std::string trace_of(int rank, Nanos start, int num_events, const std::string& name = "EVENT") {
  std::string text = fmt::format(
      "[\n{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{0},\"args\":{{\"name\":\"rank {0}\"}}}}"
      ",\n{{\"ph\":\"M\",\"name\":\"clock\",\"pid\":{0},\"args\":{{\"boottime_ns\":{1}}}}}",
      rank, start.count());
  for (int i = 0; i < num_events; ++i) {
    text += fmt::format(",\n{{\"ts\":{}.000,\"ph\":\"i\",\"name\":\"{}\",\"pid\":{},\"tid\":1}}",
                        std::int64_t{i} * 1000000, name, rank);
  }
  return text + "\n]";
}

void add_file(TimelineSpool& spool, const std::string& name, const std::string& text,
              bool is_whole = true) {
  constexpr std::size_t kPiece = 100;
  for (std::size_t at = 0; at <= text.size(); at += kPiece) {
    v1::FileChunk chunk;
    chunk.set_name(name);
    chunk.set_data(text.substr(at, kPiece));
    chunk.set_eof(is_whole && at + kPiece > text.size());
    ASSERT_TRUE(spool.add(chunk));
  }
}

TEST_F(TimelineMerge, LaysNodesOverEachOtherByTheirClocks) {
  TimelineSpool node1 = make_spool();
  TimelineSpool node2 = make_spool();
  // node2's clock shows 900 s more; its rank began half a second after the others.
  add_file(node1, "rank0.json", trace_of(0, seconds(101), 3));
  add_file(node1, "rank2.json", trace_of(2, seconds(102), 1));
  add_file(node2, "rank1.json", trace_of(1, seconds(1001) + Nanos(500000000), 2));
  const auto result =
      merge({{"node1", &node1, Nanos(0)}, {"node2", &node2, -seconds(900)}}, seconds(100));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->num_ranks, 3U);
  EXPECT_THAT(result->warnings, IsEmpty());
  EXPECT_EQ(result->num_bytes, fs::file_size(target().path));
  const Json trace = merged();
  ASSERT_TRUE(trace.is_array());
  std::map<int, std::vector<double>> times;
  std::vector<int> named;
  for (const Json& event : trace) {
    if (event["ph"] == "i") times[event["pid"]].push_back(event["ts"].get<double>() / 1e6);
    if (event["name"] == "process_name") named.push_back(event["pid"]);
  }
  EXPECT_THAT(named, ElementsAre(0, 1, 2));
  EXPECT_THAT(times[0], ElementsAre(1.0, 2.0, 3.0));
  EXPECT_THAT(times[1], ElementsAre(1.5, 2.5));
  EXPECT_THAT(times[2], ElementsAre(2.0));
}

TEST_F(TimelineMerge, ReplacesAFileAndLeavesNothingBesideIt) {
  std::ofstream(target().path) << "old";
  TimelineSpool spool = make_spool();
  add_file(spool, "rank0.json", trace_of(0, seconds(1), 1));
  ASSERT_TRUE(merge({{"node1", &spool, Nanos(0)}}));
  EXPECT_TRUE(merged().is_array());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
  struct stat info {};
  ASSERT_EQ(stat(target().path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640U);
}

TEST_F(TimelineMerge, LeavesAFileOfAnothersAloneIfNoRankHasWritten) {
  std::ofstream(target().path) << "Horovod's own";
  TimelineSpool spool = make_spool();
  const auto none = merge({{"node1", &spool, Nanos(0)}});
  ASSERT_TRUE(none);
  EXPECT_EQ(none->num_ranks, 0U);
  add_file(spool, "rank0.json", "[]");
  const auto no_clock = merge({{"node1", &spool, Nanos(0)}});
  ASSERT_TRUE(no_clock);
  EXPECT_EQ(no_clock->num_ranks, 0U);
  EXPECT_THAT(no_clock->warnings, ElementsAre(HasSubstr("node1: timeline of rank 0: left out")));
  std::ifstream file(target().path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "Horovod's own");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(TimelineMerge, TakesWhatHasComeOfAFile) {
  TimelineSpool spool = make_spool();
  const std::string text = trace_of(0, seconds(1), 20);
  add_file(spool, "rank0.json", text.substr(0, text.size() - 30), false);
  add_file(spool, "notes.txt", "not asked for");
  const auto result = merge({{"node1", &spool, Nanos(0)}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->num_ranks, 1U);
  EXPECT_THAT(result->warnings, IsEmpty()) << "that it is cut off is told with the node";
  EXPECT_EQ(merged().size(), 2U + 19U);
}

TEST_F(TimelineMerge, SaysWhyAFileEndsEarlyAndKeepsWhatThereIs) {
  TimelineSpool spool = make_spool();
  v1::FileChunk chunk;
  chunk.set_name("rank0.json");
  chunk.set_data(trace_of(0, seconds(1), 2));
  chunk.set_eof(true);
  chunk.set_disk_full(true);
  ASSERT_TRUE(spool.add(chunk));
  v1::FileChunk empty;
  empty.set_name("rank1.json");
  empty.set_eof(true);
  ASSERT_TRUE(spool.add(empty));
  v1::FileChunk broken;
  broken.set_name("rank2.json");
  broken.set_data(trace_of(2, seconds(1), 3).substr(0, 230));
  ASSERT_TRUE(spool.add(broken));
  broken.clear_data();
  broken.set_eof(true);
  broken.set_error("Input/output error");
  ASSERT_TRUE(spool.add(broken));
  const auto result = merge({{"node1", &spool, Nanos(0)}});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->num_ranks, 2U);
  EXPECT_THAT(
      result->warnings,
      ElementsAre(
          "node1: timeline of rank 0: it ends early: the disk of its node is full; 2 events "
          "of it are kept",
          "node1: timeline of rank 1: nothing of it could be kept: its file is empty, as a "
          "full disk leaves it",
          HasSubstr("node1: timeline of rank 2: it ends early: Input/output error; ")));
  EXPECT_TRUE(merged().is_array());
}

TEST_F(TimelineMerge, CountsLinesThatCannotBeRead) {
  TimelineSpool spool = make_spool();
  add_file(spool, "rank0.json", trace_of(0, seconds(1), 1) + "\nx\ny\n");
  const auto result = merge({{"node1", &spool, Nanos(0)}});
  ASSERT_TRUE(result);
  EXPECT_THAT(result->warnings,
              ElementsAre("node1: timeline of rank 0: 2 lines of it cannot be read"));
  EXPECT_TRUE(merged().is_array());
}

TEST_F(TimelineMerge, CanBeBrokenOff) {
  TimelineSpool spool = make_spool();
  add_file(spool, "rank0.json", trace_of(0, seconds(1), 3));
  is_cancelled_ = true;
  const auto result = merge({{"node1", &spool, Nanos(0)}});
  ASSERT_FALSE(result);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(TimelineMerge, SaysWhyTheFileCannotBeWritten) {
  TimelineSpool spool = make_spool();
  add_file(spool, "rank0.json", trace_of(0, seconds(1), 3));
  const auto result = merge_timelines({{"node1", &spool, Nanos(0)}}, Nanos(0),
                                      {folder_ + "/none/merged.json", 0600}, is_cancelled_);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("/none/merged.json cannot be written: No such"));
}

// Resident pages that belong to no file, in KiB.
long anonymous_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("RssAnon:", 0) == 0) return std::atol(line.c_str() + 8);
  }
  return -1;
}

TEST_F(TimelineMerge, MemoryIsForTheLinesOfOneRankNotForTheFiles) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer keeps what is freed: memory in use cannot be told";
#endif
  constexpr int kNumRanks = 12;
  constexpr int kNumEvents = 2000;
  TimelineSpool spool = make_spool();
  for (int rank = 0; rank < kNumRanks; ++rank) {
    std::string text = trace_of(rank, seconds(1), kNumEvents, std::string(300, 'x'));
    v1::FileChunk chunk;
    chunk.set_name(fmt::format("rank{}.json", rank));
    chunk.set_data(std::move(text));
    chunk.set_eof(true);
    ASSERT_TRUE(spool.add(chunk));
  }
  const long before = anonymous_memory();
  ASSERT_GT(before, 0);
  ASSERT_TRUE(merge({{"node1", &spool, Nanos(0)}}));
  EXPECT_LT(anonymous_memory() - before, 6 * 1024);
  EXPECT_GT(spool.num_bytes(), 7U << 20U);
}

}  // namespace
}  // namespace hvd
