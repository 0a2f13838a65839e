#include "agent/fabric_patience.h"

#include <gtest/gtest.h>

#include <boost/asio/error.hpp>

namespace hvd {
namespace {

namespace error = boost::asio::error;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(IsRefusal, WhoeverSaysNoIsNotAskedAgain) {
  for (const auto said : {error::connection_refused, error::network_unreachable,
                          error::access_denied, error::invalid_argument}) {
    EXPECT_TRUE(is_refusal(said, milliseconds(1))) << said;
    EXPECT_TRUE(is_refusal(said, seconds(7))) << said;
  }
}

TEST(IsRefusal, WhatMayHaveGotLostIsTriedAgain) {
  for (const auto lost : {error::timed_out, error::connection_reset, error::connection_aborted}) {
    EXPECT_FALSE(is_refusal(lost, milliseconds(1))) << lost;
  }
}

TEST(IsRefusal, AHostIsUnreachableAtOnceOrOnlySilent) {
  EXPECT_TRUE(is_refusal(error::host_unreachable, milliseconds(2))) << "a router's answer";
  EXPECT_FALSE(is_refusal(error::host_unreachable, milliseconds(3050))) << "nobody's";
}

TEST(EnoughAfter, OtherAddressesGetFourTimesAsLongButTwoSecondsAtLeast) {
  EXPECT_EQ(enough_after(milliseconds(1)), milliseconds(2001));
  EXPECT_EQ(enough_after(milliseconds(500)), milliseconds(2500));
  EXPECT_EQ(enough_after(milliseconds(1600)), seconds(8));
}

}  // namespace
}  // namespace hvd
