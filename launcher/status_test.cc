#include <gmock/gmock.h>

#include "launcher/clock_offset.h"
#include "launcher/status_line.h"
#include "launcher/tail.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<NodeProgress> nodes(int num_ready, int num_pending) {
  std::vector<NodeProgress> list;
  for (int i = 0; i < num_ready; ++i) list.push_back({"ready", "running", true});
  for (int i = 0; i < num_pending; ++i) {
    list.push_back({"node" + std::to_string(i + 3), "authenticate", false});
  }
  return list;
}

TEST(StatusLine, NamesWhoIsWaitedForAndWhere) {
  EXPECT_EQ(status_line(nodes(31, 1)), "31 of 32 ready, waiting for node3: authenticate");
  EXPECT_EQ(status_line(nodes(4, 0)), "4 of 4 ready");
  EXPECT_EQ(status_line(nodes(0, 8)),
            "0 of 8 ready, waiting for node3: authenticate, node4: authenticate, "
            "node5: authenticate and 5 more");
  EXPECT_EQ(pending_text(nodes(1, 0)), "");
}

TEST(ClockOffset, TheShortestRoundTripGivesOffsetAndError) {
  ClockOffset clock;
  clock.add(seconds(100), seconds(500) + milliseconds(30), seconds(100) + milliseconds(40));
  clock.add(seconds(101), seconds(501) + milliseconds(1), seconds(101) + milliseconds(2));
  clock.add(seconds(102), seconds(502) + milliseconds(90), seconds(102) + milliseconds(100));
  const auto mapped = clock.to_launcher(seconds(503), seconds(101) + milliseconds(2));
  EXPECT_EQ(mapped.time, seconds(103));
  EXPECT_EQ(mapped.error, milliseconds(1));
}

TEST(ClockOffset, AnOldEchoIsWorthLessAndIsReplacedInTime) {
  ClockOffset clock;
  clock.add(seconds(100), seconds(500), seconds(100) + milliseconds(2));
  EXPECT_GT(clock.to_launcher(seconds(500), seconds(1100)).error, milliseconds(90));
  const Nanos later = seconds(3700);
  clock.add(later, seconds(4000), later + milliseconds(10));
  EXPECT_EQ(clock.to_launcher(seconds(4000), later).time, later + milliseconds(5));
}

TEST(ClockOffset, WithoutAnEchoTheTimeOfArrivalCountsAndNonsenseIsIgnored) {
  ClockOffset clock;
  clock.add(seconds(10), seconds(1), seconds(9));
  const auto mapped = clock.to_launcher(seconds(1), seconds(50));
  EXPECT_EQ(mapped.time, seconds(50));
  EXPECT_EQ(mapped.error, ClockOffset::kUnknownError);
}

TEST(Tail, KeepsTheLastTwentyLinesHoweverTheyArrive) {
  Tail tail(2);
  std::string all;
  for (int i = 0; i < 100; ++i) all += "line " + std::to_string(i) + "\n";
  tail.add(0, all);
  for (const char c : all) tail.add(1, std::string_view(&c, 1));
  for (const std::uint32_t rank : {0U, 1U}) {
    const auto lines = tail.lines(rank);
    ASSERT_THAT(lines, SizeIs(20));
    EXPECT_EQ(lines.front(), "line 80");
    EXPECT_EQ(lines.back(), "line 99");
  }
  tail.add(0, "unfinished");
  EXPECT_THAT(tail.lines(0), SizeIs(20));
  EXPECT_EQ(tail.lines(0).back(), "unfinished");
  EXPECT_EQ(tail.lines(0).front(), "line 81");
}

TEST(Tail, FoldsBlankLinesAndKeepsTheLastStateOfOverwrittenOnes) {
  Tail tail(1);
  tail.add(0, "\na\r\n 10%\r 20%\r\n\nb");
  EXPECT_THAT(tail.lines(0), ElementsAre("a", " 20%", "", "b"));
  tail.add(7, "not of this job");
  EXPECT_THAT(tail.lines(7), IsEmpty());
}

TEST(Tail, BlankLinesDoNotHideWhatWasWritten) {
  Tail tail(2);
  tail.add(0, "first\ncause\n" + std::string(5000, '\n'));
  for (int i = 0; i < 5000; ++i) tail.add(0, i % 2 == 0 ? "\n" : " \r\n");
  EXPECT_THAT(tail.lines(0), ElementsAre("first", "cause"));
  for (int i = 0; i < 30; ++i) tail.add(1, "line " + std::to_string(i) + "\n\n\n");
  const auto lines = tail.lines(1);
  ASSERT_THAT(lines, SizeIs(19));
  EXPECT_EQ(lines.front(), "line 20");
  EXPECT_EQ(lines[1], "");
}

TEST(Tail, IsBoundedForARankThatNeverEndsItsLine) {
  Tail tail(1);
  const std::string block(10'000, 'x');
  for (int i = 0; i < 100; ++i) tail.add(0, block);
  tail.add(0, std::string(1'000'000, 'y'));
  tail.add(0, "end");
  const auto lines = tail.lines(0);
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_LE(lines[0].size(), Tail::kMaxBytes);
  EXPECT_TRUE(lines[0].ends_with("yend"));
}

}  // namespace
}  // namespace hvd
