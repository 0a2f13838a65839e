#include "launcher/timeline/trace_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "proto/timeline_name.h"

namespace hvd {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using Json = nlohmann::json;

constexpr std::string_view kClock =
    R"({"ph":"M","name":"clock","pid":3,"tid":0,"args":{"boottime_ns":5000000000}})";

std::string file_of(const std::vector<std::string>& lines) {
  std::string text = "[\n" + std::string(kClock);
  for (const std::string& line : lines) text += ",\n" + line;
  return text + "\n]";
}

std::string event(const std::string& name, const std::string& time, const std::string& rest) {
  return R"({"ts":)" + time + R"(,"ph":"X","name":")" + name + R"(","pid":3,)" + rest + "}";
}

std::vector<std::string> names_in_order(const std::string& text, const TraceIndex& index) {
  std::vector<std::string> names;
  for (const TraceLine& line : index.events) {
    names.push_back(Json::parse(text.substr(line.offset, line.num_bytes))["name"]);
  }
  return names;
}

TEST(TraceIndex, OrdersEachTrackByTimeWithEnclosingSpansFirst) {
  const std::string text = file_of({
      event("inner", "10.5", R"("dur":5,"tid":2)"),
      event("later", "40.000", R"("dur":1,"tid":2)"),
      event("outer", "10.500", R"("dur":20.25,"tid":2)"),
      event("first", "-3.000", R"("dur":1,"tid":2)"),
      event("step", "99.000", R"("dur":1,"tid":0)"),
  });
  const TraceIndex index = index_trace(text, 3);
  EXPECT_TRUE(index.has_clock);
  EXPECT_EQ(index.start, seconds(5));
  EXPECT_EQ(index.num_unreadable, 0U);
  EXPECT_EQ(index.metadata.size(), 1U);
  EXPECT_THAT(names_in_order(text, index), ElementsAre("step", "first", "outer", "inner", "later"));
  EXPECT_EQ(index.events[2].at, Nanos(10500));
  EXPECT_EQ(index.events[2].duration, Nanos(20250));
}

TEST(TraceIndex, LeavesOutWhatIsNoEventOfTheRank) {
  const std::string text = file_of({
      event("good", "1.000", R"("tid":1)"),
      "nonsense",
      R"({"ts":1,"ph":"i","name":"of another","pid":4})",
      R"({"ph":"X","name":"no time","pid":3})",
      R"({"ts":"1","ph":"X","name":"time is text","pid":3})",
      R"({"ts":1,"name":"no phase","pid":3})",
      "[1,2]",
      "{\"ts\":1,\"ph\":\"i\",\"name\":\"bad \xff text\",\"pid\":3}",
  });
  const TraceIndex index = index_trace(text, 3);
  EXPECT_THAT(names_in_order(text, index), ElementsAre("good"));
  EXPECT_EQ(index.num_unreadable, 7U);
}

TEST(TraceIndex, TakesWhatIsWholeOfATornFile) {
  std::string text = file_of({event("a", "1.000", R"("tid":1)"), event("b", "2.000", R"("tid":1)"),
                              event("c", "3.000", R"("tid":1)")});
  text.resize(text.size() - 10);
  const TraceIndex index = index_trace(text, 3);
  EXPECT_THAT(names_in_order(text, index), ElementsAre("a", "b"));
  EXPECT_EQ(index.num_unreadable, 1U);
  EXPECT_FALSE(index_trace("", 3).has_clock);
  EXPECT_FALSE(index_trace("[\n]", 3).has_clock);
  EXPECT_FALSE(index_trace(std::string(kClock), 4).has_clock) << "of another rank";
}

TEST(TraceShift, MapsANodesTimesToTheLaunchers) {
  // The node's clock is 100 s ahead; its file began at 105 s there, the job at 3 s here.
  EXPECT_EQ(trace_shift(seconds(105), -seconds(100), seconds(3)), seconds(2));
  EXPECT_EQ(trace_shift(seconds(1), seconds(50), seconds(60)), -seconds(9));
}

TEST(TraceShift, FilesOfNodesWithDifferentClocksMeet) {
  // One moment, 7 s into the job, in the files of two nodes.
  const Nanos job_start = seconds(1000);
  const Nanos moment = seconds(1007);
  for (const Nanos to_launcher : {Nanos(seconds(-400)), Nanos(seconds(90000)), Nanos(0)}) {
    const Nanos on_node = moment - to_launcher;
    const Nanos file_start = on_node - microseconds(123456);
    const Nanos in_file = on_node - file_start;
    EXPECT_EQ(in_file + trace_shift(file_start, to_launcher, job_start), seconds(7));
  }
}

TEST(MovedLine, ChangesTheTimeAndNothingElse) {
  struct Case {
    std::string line;
    Nanos shift;
    std::string moved;
  };
  const std::vector<Case> cases = {
      {R"({"ts":1.500,"ph":"i","name":"a,\"ts\":9","pid":3})", Nanos(2500),
       R"({"ts":4.000,"ph":"i","name":"a,\"ts\":9","pid":3})"},
      {R"({"ts":1.500,"ph":"i","pid":3})", -seconds(1), R"({"ts":-999998.500,"ph":"i","pid":3})"},
      {R"({"ts":0.000,"ph":"i","pid":3})", Nanos(-1), R"({"ts":-0.001,"ph":"i","pid":3})"},
      {R"({"ts":86400000000.001,"ph":"i","pid":3})", Nanos(1),
       R"({"ts":86400000000.002,"ph":"i","pid":3})"},
  };
  for (const Case& it : cases) {
    const std::string text = file_of({it.line});
    const TraceIndex index = index_trace(text, 3);
    ASSERT_EQ(index.events.size(), 1U) << it.line;
    EXPECT_EQ(moved_line(text, index.events[0], it.shift), it.moved);
  }
}

TEST(MovedLine, PutsOtherWritersLinesTogetherAnew) {
  const std::string text = file_of({R"({"ph":"i", "ts": 2, "pid":3, "args":{"ts":7}})"});
  const TraceIndex index = index_trace(text, 3);
  ASSERT_EQ(index.events.size(), 1U);
  const Json moved = Json::parse(moved_line(text, index.events[0], Nanos(1000)));
  EXPECT_EQ(moved["ts"], 3.0);
  EXPECT_EQ(moved["args"]["ts"], 7);
}

TEST(TimelineName, BelongsToExactlyOneRank) {
  EXPECT_EQ(timeline_name(12), "rank12.json");
  EXPECT_EQ(rank_of_timeline("rank12.json"), 12U);
  EXPECT_EQ(rank_of_timeline("rank0.json"), 0U);
  for (const char* name : {"", "rank.json", "rank1.json.new", "rank01.json", "rank-1.json",
                           "rank4294967296.json", "xrank1.json", "rank1json", "1"}) {
    EXPECT_EQ(rank_of_timeline(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace hvd
