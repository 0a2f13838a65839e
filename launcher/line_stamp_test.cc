#include "launcher/line_stamp.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace hvd {
namespace {

TEST(LineStamp, IsTheWallTimeAsHorovodrunWritesIt) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  EXPECT_EQ(line_stamp(1772618410, true), "Wed Mar 04 10:00:10 2026");
  EXPECT_EQ(line_stamp(0, false), "Thu Jan 01 00:00:00 1970 ");
}

TEST(LineStamp, RunsOnWithItsClock) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  std::time_t now = 59;
  const auto stamp = running_line_stamp(true, [&now] { return now; });
  EXPECT_THAT(stamp(), testing::HasSubstr("00:00:59"));
  EXPECT_THAT(stamp(), testing::HasSubstr("00:00:59"));
  now = 60;
  EXPECT_THAT(stamp(), testing::HasSubstr("00:01:00"));
}

}  // namespace
}  // namespace hvd
