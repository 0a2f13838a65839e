#include "runtime/poll_until.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

TEST(PollUntil, EndsWhenItHasSettled) {
  int asked = 0;
  const auto settles_at_third = [&] { return ++asked == 3; };
  EXPECT_EQ(
      poll_until(steady_clock::now() + milliseconds(5000), settles_at_third, [] { return false; }),
      PollEnd::kSettled);
  EXPECT_EQ(asked, 3);
}

TEST(PollUntil, AsksOnceEvenWhenItsTimeIsUp) {
  EXPECT_EQ(poll_until(
                steady_clock::now() - milliseconds(1), [] { return true; }, [] { return false; }),
            PollEnd::kSettled);
}

TEST(PollUntil, EndsAtItsDeadline) {
  const SteadyTime begin = steady_clock::now();
  EXPECT_EQ(poll_until(
                begin + milliseconds(20), [] { return false; }, [] { return false; }),
            PollEnd::kDeadline);
  EXPECT_GE(steady_clock::now() - begin, milliseconds(20));
}

TEST(PollUntil, EndsWhenSomebodyGivesUp) {
  int asked = 0;
  EXPECT_EQ(poll_until(
                steady_clock::now() + milliseconds(5000), [] { return false; },
                [&] { return ++asked == 2; }),
            PollEnd::kGivenUp);
}

}  // namespace
}  // namespace hvd
