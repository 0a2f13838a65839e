#include "agent/vital_book.h"

#include <gmock/gmock.h>

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;
using std::chrono::milliseconds;
using std::chrono::seconds;

ProcStat process(pid_t pid, pid_t parent, char state, std::uint64_t ticks, pid_t session = 0) {
  ProcStat process;
  process.pid = pid;
  process.ppid = parent;
  process.session = session == 0 ? pid : session;
  process.state = state;
  process.cpu_ticks = ticks;
  return process;
}

TEST(RankFamily, HoldsDescendantsAndWhatIsLeftInTheSession) {
  const std::vector<ProcStat> table = {
      process(11, 10, 'S', 0, 10), process(10, 5, 'S', 0),      process(12, 11, 'S', 0, 12),
      process(13, 5, 'S', 0, 10),  process(20, 5, 'S', 0),      process(30, 20, 'S', 0),
      process(7, 5, 'S', 0),       process(8, 8, 'S', 0, 1000),
  };
  const auto families = find_families(table, {10, 20, 99});
  ASSERT_EQ(families.size(), 2u);
  std::vector<pid_t> pids;
  for (const ProcStat* member : families.at(10)) pids.push_back(member->pid);
  EXPECT_THAT(pids, testing::ElementsAre(10, 11, 12, 13));
  EXPECT_EQ(families.at(20).size(), 2u);
}

TEST(RankFamily, AStoppedOrHangingMemberTellsMoreThanALeaderThatWaitsForIt) {
  const std::vector<ProcStat> table = {process(10, 5, 'S', 3), process(11, 10, 'R', 4),
                                       process(12, 10, 'D', 5)};
  auto families = find_families(table, {10});
  EXPECT_EQ(family_state(families.at(10)), 'D');
  EXPECT_EQ(family_ticks(families.at(10)), 12u);
  auto stopped = table;
  stopped[1].state = 'T';
  families = find_families(stopped, {10});
  EXPECT_EQ(family_state(families.at(10)), 'T');
  EXPECT_EQ(family_state({}), '\0');
}

// Looks each 250 ms at a rank that is judged after 2 s.
class VitalBookTest : public testing::Test {
 protected:
  VitalBookTest() { book_.start(3, 10, now_); }
  void look(const std::vector<ProcStat>& table) {
    now_ += milliseconds(250);
    book_.look(table, now_);
  }
  v1::RankVitals vitals() { return book_.signs(now_).ranks(0); }

  Nanos now_ = seconds(100);
  VitalBook book_{milliseconds(250), 100};
};

TEST_F(VitalBookTest, OutputAndCpuTimeAreSignsOfTheirOwn) {
  look({process(10, 5, 'R', 1)});
  EXPECT_EQ(vitals().silent_ms(), 250);
  EXPECT_EQ(vitals().idle_ms(), 0);
  look({process(10, 5, 'S', 1)});
  book_.hear(3, now_);
  EXPECT_EQ(vitals().silent_ms(), 0);
  EXPECT_EQ(vitals().idle_ms(), 250);
  EXPECT_EQ(vitals().pid(), 10);
  EXPECT_EQ(vitals().state(), "S");
}

TEST_F(VitalBookTest, AStoppedRankGivesNone) {
  for (int i = 0; i < 8; ++i) look({process(10, 5, 'T', i == 0 ? 50 : 51)});
  EXPECT_EQ(vitals().state(), "T");
  EXPECT_EQ(vitals().idle_ms(), 1500);
  EXPECT_EQ(vitals().silent_ms(), 2000);
}

TEST_F(VitalBookTest, AChildThatWorksOrEndsIsASign) {
  look({process(10, 5, 'S', 1), process(11, 10, 'R', 7)});
  look({process(10, 5, 'S', 1), process(11, 10, 'R', 8)});
  EXPECT_EQ(vitals().idle_ms(), 0);
  look({process(10, 5, 'S', 1)});
  EXPECT_EQ(vitals().idle_ms(), 0);
  look({process(10, 5, 'S', 1)});
  EXPECT_EQ(vitals().idle_ms(), 250);
}

TEST_F(VitalBookTest, AfterALateLookTheRanksBeginAnew) {
  look({process(10, 5, 'S', 1)});
  now_ += seconds(10);
  look({process(10, 5, 'S', 1)});
  EXPECT_EQ(vitals().idle_ms(), 0);
  EXPECT_EQ(vitals().silent_ms(), 0);
}

TEST_F(VitalBookTest, WhatHasEndedOrGoneIsNotTold) {
  look({});
  EXPECT_EQ(vitals().state(), "");
  book_.end(3);
  EXPECT_TRUE(book_.is_empty());
  EXPECT_EQ(book_.signs(now_).ranks_size(), 0);
}

TEST(VitalBook, ThreadsThatOnlyWakeUpNowAndThenAreNoSign) {
  VitalBook book(seconds(75), 100);  // judged after 10 minutes: 600 ms count
  Nanos now = seconds(1000);
  book.start(0, 10, now);
  std::uint64_t ticks = 100;
  book.look({process(10, 5, 'S', ticks)}, now);
  for (int i = 0; i < 8; ++i) book.look({process(10, 5, 'S', ticks += 5)}, now += seconds(75));
  EXPECT_EQ(book.signs(now).ranks(0).idle_ms(), 600000);
  book.look({process(10, 5, 'S', ticks += 50)}, now += seconds(75));
  EXPECT_EQ(book.signs(now).ranks(0).idle_ms(), 0);
}

}  // namespace
}  // namespace hvd
