#include "launcher/stop_wishes.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace hvd {
namespace {

using std::chrono::milliseconds;

constexpr pid_t kWrapper = 100;
constexpr pid_t kAnother = 200;

struct Arrival {
  int ms;
  pid_t sender;  // 0: the terminal
  int number = SIGINT;
};

int wishes(const std::vector<Arrival>& arrivals) {
  StopWishes wishes;
  for (const Arrival& it : arrivals) {
    (void)wishes.take({it.number, it.sender == 0, it.sender, milliseconds(1000 + it.ms)});
  }
  return wishes.count();
}

TEST(StopWishes, TheSameAgainIsASecondWishHoweverSoon) {
  EXPECT_EQ(wishes({{0, 0}}), 1);
  EXPECT_EQ(wishes({{0, 0}, {40, 0}}), 2);
  EXPECT_EQ(wishes({{0, 0}, {40, 0}, {80, 0}}), 3);
  EXPECT_EQ(wishes({{0, kWrapper}, {100, kWrapper}}), 2);
  EXPECT_EQ(wishes({{0, kWrapper}, {100, kAnother}}), 2) << "two runs of kill";
  EXPECT_EQ(wishes({{0, 0}, {2000, 0}}), 2);
}

TEST(StopWishes, WhatAWrapperPassesOnIsTheSameWish) {
  EXPECT_EQ(wishes({{0, 0}, {3, kWrapper}}), 1);
  EXPECT_EQ(wishes({{0, 0}, {250, kWrapper}}), 1);
  EXPECT_EQ(wishes({{0, kWrapper}, {50, 0}}), 1) << "it may even come first";
  EXPECT_EQ(wishes({{0, 0}, {30, kWrapper}, {60, kAnother}}), 1) << "a wrapper of a wrapper";
  EXPECT_EQ(wishes({{0, 0}, {100, 0}, {101, kWrapper}, {150, kWrapper}}), 2);
  EXPECT_EQ(wishes({{0, 0}, {30, kWrapper}, {100, kWrapper}}), 2);
}

TEST(StopWishes, SignalsOfOneMomentAreOne) {
  EXPECT_EQ(wishes({{0, kWrapper}, {1, kWrapper}}), 1) << "to its child, then to its group";
  EXPECT_EQ(wishes({{0, 1, SIGTERM}, {2, 1, SIGHUP}}), 1);
  EXPECT_EQ(wishes({{0, 1, SIGTERM}, {50, 1, SIGHUP}}), 2);
}

TEST(StopWishes, LongAfterwardsNothingIsAnEcho) { EXPECT_EQ(wishes({{0, 0}, {300, kWrapper}}), 2); }

TEST(StopWishes, QuitIsNoEchoOfAnInterrupt) {
  EXPECT_EQ(wishes({{0, 0}, {5, 0, SIGQUIT}}), 2);
  EXPECT_EQ(wishes({{0, 0, SIGQUIT}, {5, kWrapper, SIGQUIT}}), 1);
}

}  // namespace
}  // namespace hvd
