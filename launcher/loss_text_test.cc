#include "launcher/loss_text.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(IsSilentFor, BeginsAfterThreeHeartbeats) {
  EXPECT_FALSE(is_silent_for(seconds(3), seconds(1)));
  EXPECT_TRUE(is_silent_for(milliseconds(3001), seconds(1)));
  EXPECT_TRUE(is_silent_for(seconds(1), milliseconds(100)));
}

TEST(ConnectionEndText, TellsASilenceBeforeTheEnd) {
  EXPECT_EQ(connection_end_text("its connection ended", milliseconds(900), seconds(1)),
            "its connection ended");
  EXPECT_EQ(connection_end_text("its connection ended", milliseconds(5800), seconds(1)),
            "no heartbeat for 5.8 s, then its connection ended");
}

}  // namespace
}  // namespace hvd
