#include "launcher/stall.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

TEST(StallSettings, AreHorovodsVariables) {
  const struct {
    EnvList launcher, user;
    bool is_on;
    Nanos warn_after, shut_down_after;
    std::size_t num_warnings;
  } cases[] = {
      {{}, {}, true, seconds(60), seconds(0), 0},
      {{{"HOROVOD_STALL_CHECK_DISABLE", "1"}}, {}, false, seconds(60), seconds(0), 0},
      {{{"HOROVOD_STALL_CHECK_DISABLE", "0"}}, {}, true, seconds(60), seconds(0), 0},
      {{{"HOROVOD_STALL_CHECK_TIME_SECONDS", "5"}},
       {{"HOROVOD_STALL_CHECK_TIME_SECONDS", "7"}},
       true,
       seconds(7),
       seconds(0),
       0},
      {{{"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "90"}}, {}, true, seconds(60), seconds(90), 0},
      {{{"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "30"}}, {}, true, seconds(60), seconds(0), 1},
      {{{"HOROVOD_STALL_CHECK_TIME_SECONDS", "0.5"}}, {}, true, milliseconds(500), seconds(0), 0},
      {{{"HOROVOD_STALL_CHECK_TIME_SECONDS", "soon"}}, {}, true, seconds(60), seconds(0), 1},
      {{{"HOROVOD_STALL_CHECK_TIME_SECONDS", "-1"}}, {}, true, seconds(60), seconds(0), 1},
      {{{"HOROVOD_STALL_CHECK_TIME_SECONDS", "0"}}, {}, false, seconds(0), seconds(0), 0},
  };
  for (const auto& c : cases) {
    const StallSettings settings = stall_settings(c.launcher, c.user);
    const auto name = testing::PrintToString(c.launcher);
    EXPECT_EQ(settings.is_on, c.is_on) << name;
    EXPECT_EQ(settings.warn_after, c.warn_after) << name;
    EXPECT_EQ(settings.shut_down_after, c.shut_down_after) << name;
    EXPECT_THAT(settings.warnings, SizeIs(c.num_warnings)) << name;
  }
}

TEST(StallSettings, SayWhatIsUsedInsteadOfNonsense) {
  const std::vector<std::tuple<const char*, const char*, const char*>> table = {
      {"HOROVOD_STALL_CHECK_TIME_SECONDS", "soon", "is no number of seconds: 60 s is used"},
      {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "-3", "is no number of seconds: it stays off"},
      {"HOROVOD_STALL_CHECK_DISABLE", "false", "is neither 0 nor 1: stalls are not looked for"},
  };
  for (const auto& [name, value, expected] : table) {
    const StallSettings settings = stall_settings({{name, value}}, {});
    EXPECT_THAT(settings.warnings,
                testing::ElementsAre(HasSubstr(fmt::format("{}={} {}", name, value, expected))));
  }
}

// Four ranks on two hosts; warned after 10 s, ended after 30 s.
class StallTest : public testing::Test {
 protected:
  static StallSettings settings() {
    StallSettings settings;
    settings.warn_after = seconds(10);
    settings.shut_down_after = seconds(30);
    return settings;
  }
  static v1::WorkerBeat beat(std::uint32_t rank, std::uint64_t scheduled, std::uint64_t completed) {
    v1::WorkerBeat beat;
    beat.set_rank(rank);
    beat.set_size(4);
    beat.set_phase("running");
    beat.set_step(scheduled / 2);
    beat.set_scheduled(scheduled);
    beat.set_completed(completed);
    if (scheduled > completed) beat.set_waiting_for("all_reduce of bucket 3");
    return beat;
  }
  void take(const v1::WorkerBeat& beat) { inspector_.take(beat, now_); }
  void take_all(std::uint64_t scheduled, std::uint64_t completed) {
    for (std::uint32_t rank = 0; rank < 4; ++rank) take(beat(rank, scheduled, completed));
  }
  // Looks once a second; everything that was found on the way.
  StallInspector::Findings pass(int num_seconds) {
    StallInspector::Findings all;
    for (int i = 0; i < num_seconds; ++i) {
      now_ += seconds(1);
      auto found = inspector_.inspect(now_);
      all.warnings.insert(all.warnings.end(), found.warnings.begin(), found.warnings.end());
      if (found.dump) all.dump = found.dump;
      if (found.stall) all.stall = found.stall;
    }
    return all;
  }

  Nanos now_ = seconds(1000);
  StallInspector inspector_{settings(), {"node1", "node1", "node2", "node2"}};
};

TEST_F(StallTest, NoRuntimeWorkerNoWord) { EXPECT_THAT(pass(100).warnings, IsEmpty()); }

TEST_F(StallTest, RanksThatAllComputeForLongAreNoStall) {
  take_all(8, 8);
  const auto found = pass(1000);
  EXPECT_THAT(found.warnings, IsEmpty());
  EXPECT_FALSE(found.dump);
}

TEST_F(StallTest, ProgressOfTheSlowestIsProgress) {
  for (std::uint64_t i = 0; i < 20; ++i) {
    take_all(i + 5, i);
    take(beat(2, i, i));
    EXPECT_THAT(pass(9).warnings, IsEmpty()) << i;
  }
}

TEST_F(StallTest, ARankThatLagsIsNamedWithItsTensorsOncePerInterval) {
  take_all(8, 7);
  auto late = beat(2, 7, 7);
  for (int i = 0; i < 9; ++i) late.add_missing(fmt::format("backbone.w{}", i));
  late.set_num_missing(20);
  take(late);
  (void)pass(1);
  const auto found = pass(25);
  ASSERT_THAT(found.warnings, SizeIs(2));
  EXPECT_EQ(found.warnings[0],
            "no progress for 10 s: missing rank 2 on node2, running at step 3, still lacks "
            "backbone.w0, backbone.w1, backbone.w2, backbone.w3, backbone.w4, backbone.w5 and 14 "
            "more; ranks 0, 1, 3 waiting for all_reduce of bucket 3");
  EXPECT_FALSE(found.dump);
}

TEST_F(StallTest, TheClockStartsWhenTheFirstRankWaits) {
  take_all(8, 8);
  (void)pass(500);
  take(beat(0, 9, 8));
  EXPECT_THAT(pass(9).warnings, IsEmpty());
  EXPECT_THAT(pass(3).warnings, SizeIs(1));
}

TEST_F(StallTest, AfterTheShutdownTimeDumpsComeASecondBeforeTheEnd) {
  take_all(8, 7);
  take(beat(3, 7, 7));
  (void)pass(1);
  EXPECT_FALSE(pass(29).dump);
  auto found = pass(1);
  EXPECT_TRUE(found.dump);
  EXPECT_FALSE(found.stall);
  found = pass(1);
  ASSERT_TRUE(found.stall);
  EXPECT_EQ(found.stall->rank, 3u);
  EXPECT_THAT(found.stall->text, HasSubstr("missing rank 3 on node2, running at step 3"));
  EXPECT_THAT(found.stall->text, HasSubstr("(HOROVOD_STALL_SHUTDOWN_TIME_SECONDS=30)"));
}

TEST_F(StallTest, AStallThatEndsInTimeEndsNothing) {
  take_all(8, 7);
  take(beat(3, 7, 7));
  (void)pass(31);
  take_all(8, 8);
  const auto found = pass(100);
  EXPECT_FALSE(found.stall);
}

TEST_F(StallTest, AStoppedRankIsBlamedBeforeOnesThatOnlyLag) {
  take_all(8, 7);
  take(beat(0, 7, 7));
  auto stopped = beat(3, 8, 7);
  stopped.set_silent_ms(21000);
  stopped.set_process_state("T");
  take(stopped);
  (void)pass(1);
  const auto found = pass(40);
  ASSERT_TRUE(found.stall);
  EXPECT_EQ(found.stall->rank, 3u);
  EXPECT_THAT(found.stall->text,
              HasSubstr("missing rank 3 on node2, running at step 4, stopped (T), no word for 21"));
  EXPECT_THAT(found.stall->text, HasSubstr("; rank 0 on node1"));
}

// It stopped after it had handed over as much as the others: only its silence tells.
TEST_F(StallTest, ASilentRankThatDoesNotLagIsFound) {
  take_all(8, 7);
  auto silent = beat(1, 8, 7);
  silent.set_silent_ms(5000);
  take(silent);
  (void)pass(1);
  const auto found = pass(11);
  ASSERT_THAT(found.warnings, SizeIs(1));
  EXPECT_THAT(found.warnings[0], HasSubstr("rank 1 on node1"));
  EXPECT_THAT(found.warnings[0], Not(HasSubstr("missing rank 0")));
}

TEST_F(StallTest, ARankThatLeftEarlyIsNamedWithItsEnd) {
  take_all(8, 8);
  inspector_.rank_ended(2, "ended with code 0");
  for (const std::uint32_t rank : {0u, 1u, 3u}) take(beat(rank, 9, 8));
  (void)pass(1);
  const auto found = pass(12);
  ASSERT_THAT(found.warnings, SizeIs(1));
  EXPECT_THAT(found.warnings[0], HasSubstr("missing rank 2 on node2, ended with code 0;"));
}

TEST_F(StallTest, ARankWithoutAnyWordIsMissing) {
  for (const std::uint32_t rank : {0u, 1u, 2u}) take(beat(rank, 1, 0));
  (void)pass(1);
  const auto found = pass(12);
  ASSERT_THAT(found.warnings, SizeIs(1));
  EXPECT_THAT(found.warnings[0], HasSubstr("rank 3 on node2, no word since it registered"));
}

TEST_F(StallTest, OfManyMissingRanksAFewAreNamed) {
  StallInspector inspector(settings(), {});
  for (std::uint32_t rank = 0; rank < 1024; ++rank) {
    auto word = beat(rank, rank == 0 ? 2 : 1, 1);
    word.set_size(1024);
    inspector.take(word, now_);
  }
  (void)inspector.inspect(now_);
  const auto found = inspector.inspect(now_ + seconds(10));
  ASSERT_THAT(found.warnings, SizeIs(1));
  EXPECT_THAT(found.warnings[0], HasSubstr("and 1015 ranks more"));
  EXPECT_LT(found.warnings[0].size(), 1000u);
}

TEST_F(StallTest, ANewGenerationBeginsAnewAndWordsOfAnOldOneAreDropped) {
  take_all(8, 7);
  take(beat(2, 7, 7));
  (void)pass(9);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    auto next = beat(rank, 1, 1);
    next.set_generation(1);
    take(next);
  }
  take(beat(0, 99, 99));
  EXPECT_THAT(pass(100).warnings, IsEmpty());
}

TEST_F(StallTest, ImpossibleWordsAreDropped) {
  auto wrong = beat(4, 99, 0);
  take(wrong);
  wrong.set_size(1000000000);
  take(wrong);
  EXPECT_THAT(pass(20).warnings, IsEmpty());
}

TEST_F(StallTest, SwitchedOffSaysNothing) {
  StallSettings off = settings();
  off.is_on = false;
  StallInspector inspector(off, {});
  inspector.take(beat(0, 9, 8), now_);
  (void)inspector.inspect(now_);
  EXPECT_THAT(inspector.inspect(now_ + seconds(100)).warnings, IsEmpty());
}

TEST_F(StallTest, AStartThatHangsIsToldOnceWithTheStages) {
  take_all(0, 0);
  for (const std::uint32_t rank : {0u, 1u}) {
    auto word = beat(rank, 0, 0);
    word.set_phase("connecting");
    take(word);
  }
  auto stopped = beat(3, 0, 0);
  stopped.set_phase("verifying");
  stopped.set_silent_ms(4000);
  stopped.set_process_state("T");
  take(stopped);
  inspector_.expect_running_by(now_ + seconds(5));
  EXPECT_THAT(pass(4).warnings, IsEmpty());
  const auto found = pass(4);
  ASSERT_THAT(found.warnings, SizeIs(1));
  EXPECT_EQ(found.warnings[0],
            "not all ranks run within the time for their start: ranks 0, 1: connecting; rank 2: "
            "running; rank 3: verifying (stopped (T), no word for 4 s)");
}

TEST_F(StallTest, AStartInTimeIsNotTold) {
  take_all(0, 0);
  inspector_.expect_running_by(now_ + seconds(5));
  EXPECT_THAT(pass(9).warnings, IsEmpty());
}

}  // namespace
}  // namespace hvd
