#include "base/log_limit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

using Told = std::vector<std::pair<std::string, std::size_t>>;

Told told(const std::vector<LogLimit::HeldBack>& held_back) {
  Told all;
  for (const LogLimit::HeldBack& it : held_back) all.emplace_back(it.key, it.count);
  return all;
}

int num_admitted(LogLimit& limit, std::string_view key, int num_lines, Nanos now) {
  int num = 0;
  for (int i = 0; i < num_lines; ++i) num += limit.admits(key, now) ? 1 : 0;
  return num;
}

TEST(LogLimit, AKeyHasAFewLinesAndTheRestIsToldOnce) {
  LogLimit limit({});
  EXPECT_EQ(num_admitted(limit, "10.0.0.9", 12, seconds(100)), 5);
  EXPECT_EQ(num_admitted(limit, "10.0.0.8", 5, seconds(101)), 5) << "another has its own";
  EXPECT_EQ(limit.ends(), seconds(110));
  EXPECT_EQ(told(limit.take_ended(seconds(110) - Nanos(1))), Told{});
  EXPECT_EQ(told(limit.take_ended(seconds(110))), (Told{{"10.0.0.9", 7}}));
  EXPECT_EQ(told(limit.take_ended(seconds(111))), Told{});
  EXPECT_EQ(limit.ends(), std::nullopt);
}

TEST(LogLimit, ANewWindowBeginsWithItsFirstLine) {
  LogLimit limit({.lines_of_one = 1});
  EXPECT_EQ(num_admitted(limit, "a", 2, seconds(1)), 1);
  EXPECT_EQ(told(limit.take_ended(seconds(500))), (Told{{"a", 1}}));
  EXPECT_EQ(num_admitted(limit, "a", 2, seconds(501)), 1);
  EXPECT_EQ(limit.ends(), seconds(511));
  EXPECT_EQ(num_admitted(limit, "a", 2, seconds(511)), 1) << "also where nobody asked at the end";
  EXPECT_EQ(told(limit.take_ended(seconds(521))), (Told{{"a", 1}}));
}

TEST(LogLimit, ManyAddressesShareWhatIsLeftAndTakeNoMemory) {
  LogLimit limit({.lines_of_one = 5, .lines_of_all = 50});
  std::size_t num_written = 0;
  constexpr int kAddresses = 100'000;
  for (int i = 0; i < kAddresses; ++i) {
    num_written += limit.admits(fmt::format("2001:db8::{:x}", i), milliseconds(i / 100)) ? 1 : 0;
  }
  EXPECT_EQ(num_written, 50U);
  EXPECT_EQ(limit.num_keys(), 50U);
  EXPECT_EQ(told(limit.take_ended(seconds(10))), (Told{{"", kAddresses - 50}}));
  EXPECT_EQ(limit.num_keys(), 0U);
  EXPECT_TRUE(limit.admits("10.0.0.1", seconds(10)));
}

TEST(LogLimit, AFloodOfOneLeavesTheOthersTheirLines) {
  LogLimit limit({.lines_of_one = 5, .lines_of_all = 50});
  EXPECT_EQ(num_admitted(limit, "flood", 1'000'000, seconds(0)), 5);
  EXPECT_EQ(num_admitted(limit, "b", 5, seconds(9)), 5);
  EXPECT_EQ(told(limit.take_ended(seconds(10))), (Told{{"flood", 999'995}}));
}

TEST(LogLimit, KeysThatTakeTurnsAreEachHeldBack) {
  LogLimit limit({.lines_of_one = 2, .lines_of_all = 5});
  int num = 0;
  for (int i = 0; i < 40; ++i) {
    for (const char* key : {"a", "b", "c", "d"}) num += limit.admits(key, seconds(i / 8)) ? 1 : 0;
  }
  EXPECT_EQ(num, 5) << "a b c d a";
  EXPECT_EQ(told(limit.take_ended(seconds(10))),
            (Told{{"a", 38}, {"b", 39}, {"c", 39}, {"d", 39}}));
}

TEST(LogLimit, ALongKeyIsShortened) {
  LogLimit limit({.lines_of_one = 1});
  const std::string key(1 << 20, 'k');
  EXPECT_EQ(num_admitted(limit, key, 2, seconds(0)), 1);
  EXPECT_EQ(told(limit.take_ended(seconds(10))), (Told{{std::string(128, 'k'), 1}}));
}

}  // namespace
}  // namespace hvd
