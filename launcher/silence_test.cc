#include "launcher/silence.h"

#include <gmock/gmock.h>

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Four ranks on two hosts, judged after 10 s.
class SilenceTest : public testing::Test {
 protected:
  void sees(std::uint32_t rank, int silent_ms, int idle_ms, const char* state = "S") {
    v1::VitalSigns signs;
    v1::RankVitals& vitals = *signs.add_ranks();
    vitals.set_rank(rank);
    vitals.set_pid(static_cast<int>(1000 + rank));
    vitals.set_state(state);
    vitals.set_silent_ms(silent_ms);
    vitals.set_idle_ms(idle_ms);
    watch_.take(signs, now_);
  }
  void beats(std::uint32_t rank, std::uint64_t step) {
    v1::WorkerBeat beat;
    beat.set_rank(rank);
    beat.set_phase("running");
    beat.set_step(step);
    watch_.take(beat, now_);
  }
  auto look() { return watch_.inspect(now_); }

  Nanos now_ = seconds(1000);
  SilenceWatch watch_{seconds(10), {"node1", "node1", "node2", "node2"}};
};

TEST_F(SilenceTest, OutputOrCpuTimeAloneIsLife) {
  EXPECT_FALSE(look()) << "nothing is known of anybody";
  sees(0, 20000, 100);
  sees(1, 100, 20000);
  sees(2, 9900, 9900);
  EXPECT_FALSE(look());
}

TEST_F(SilenceTest, ASilentRankIsNamedWithAllThatIsKnown) {
  for (std::uint32_t rank = 0; rank < 4; ++rank) sees(rank, 100, 100, "R");
  sees(2, 12000, 10500, "T");
  const auto silence = look();
  ASSERT_TRUE(silence);
  EXPECT_EQ(silence->rank, 2u);
  EXPECT_EQ(silence->pid, 1002);
  EXPECT_EQ(silence->text,
            "rank 2 (node2, pid 1002) has given no sign of life for 10 s, it is stopped (T): no "
            "output, no CPU time (--stall-timeout 10 s)");
}

TEST_F(SilenceTest, ProgressOfARuntimeWorkerIsLife) {
  sees(1, 100, 100);
  beats(1, 7);
  now_ += seconds(20);
  sees(1, 20000, 20000);
  beats(1, 8);
  EXPECT_FALSE(look());
  now_ += seconds(9);
  beats(1, 8);  // the same word again is none
  EXPECT_FALSE(look());
  now_ += seconds(1);
  const auto silence = look();
  ASSERT_TRUE(silence);
  EXPECT_THAT(silence->text, HasSubstr("no progress told by its heartbeats (running at step 8)"));
}

TEST_F(SilenceTest, TheStoppedOneIsBlamedAndNotThoseThatWaitForIt) {
  sees(0, 10300, 10300);
  sees(1, 10200, 10200);
  sees(2, 9700, 9700, "T");
  sees(3, 100, 100, "R");
  const auto silence = look();
  ASSERT_TRUE(silence);
  EXPECT_EQ(silence->rank, 2u);
  EXPECT_THAT(silence->ranks, ElementsAre(0, 1, 2));
  EXPECT_THAT(silence->text, HasSubstr("silent, too: ranks 0, 1"));
}

TEST_F(SilenceTest, OfEqualsTheOneThatIsSilentLongest) {
  sees(0, 10300, 10300);
  sees(1, 11200, 11200);
  ASSERT_TRUE(look());
  EXPECT_EQ(look()->rank, 1u);
  sees(0, 10300, 10300, "D");
  EXPECT_EQ(look()->rank, 0u);
  EXPECT_THAT(look()->text, HasSubstr("in uninterruptible sleep (D)"));
}

TEST_F(SilenceTest, ARankThatHasEndedIsNoMoreAndAnAgentThatIsNotHeardAgesNobody) {
  sees(0, 9000, 9000);
  now_ += seconds(100);
  EXPECT_FALSE(look());
  sees(0, 11000, 11000);
  EXPECT_TRUE(look());
  watch_.rank_ended(0);
  EXPECT_FALSE(look());
}

TEST(Silence, AgentsLookOftenEnough) {
  EXPECT_EQ(SilenceWatch::look_period(seconds(2)), milliseconds(250));
  EXPECT_EQ(SilenceWatch::look_period(milliseconds(200)), milliseconds(100));
  EXPECT_EQ(SilenceWatch::look_period(std::chrono::hours(10)), seconds(60));
}

}  // namespace
}  // namespace hvd
