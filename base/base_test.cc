#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/disk_file.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Status, ContextGoesInFrontAndKeepsTheCode) {
  const Error error = Error{"ENOENT", ExitCode::kNotFound, true}.within("rank 3");
  EXPECT_EQ(error.message, "rank 3: ENOENT");
  EXPECT_EQ(error.code, ExitCode::kNotFound);
  EXPECT_TRUE(error.may_retry);
}

TEST(Status, MakeErrorFormats) {
  const Result<int> result = make_error(ExitCode::kUsage, "-np {}: must be at least 1", 0);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "-np 0: must be at least 1");
  EXPECT_EQ(result.error().code, ExitCode::kUsage);
}

TEST(UniqueFd, MoveClosesTheOldOneAndEmptiesTheSource) {
  UniqueFd a(open("/dev/null", O_RDONLY));
  UniqueFd b(open("/dev/null", O_RDONLY));
  const int kept = b.get();
  const int closed = a.get();
  a = std::move(b);
  EXPECT_EQ(a.get(), kept);
  EXPECT_FALSE(b.is_valid());
  EXPECT_EQ(fcntl(closed, F_GETFD), -1);
}

TEST(Clock, DurationsReadAsSentences) {
  EXPECT_EQ(format_duration(milliseconds(310)), "0.31 s");
  EXPECT_EQ(format_duration(milliseconds(1)), "0.001 s");
  EXPECT_EQ(format_duration(Nanos(3500)), "0.000 s");
  EXPECT_EQ(format_duration(seconds(15)), "15 s");
  EXPECT_EQ(format_duration(seconds(125)), "2 min 5 s");
  EXPECT_EQ(format_duration(seconds(7260)), "2 h 1 min");
}

TEST(Log, SinkGetsOnlyWhatTheLevelAllows) {
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view text) { lines.emplace_back(text); });
  set_log_level(LogLevel::kInfo);
  log(LogLevel::kInfo, "rank {}", 1);
  log(LogLevel::kDebug, "hidden");
  set_log_sink(nullptr);
  EXPECT_EQ(lines, std::vector<std::string>{"rank 1"});
}

TEST(Event, WakesWaitersAndHonoursTheDeadline) {
  Loop loop;
  Event event(loop);
  bool woken = false;
  bool timed_out = false;
  boost::asio::co_spawn(
      loop,
      [&]() -> Task<void> {
        timed_out = !co_await event.wait_until(std::chrono::steady_clock::now() + milliseconds(5));
        event.set();
        co_await event.wait();
        woken = true;
      },
      boost::asio::detached);
  loop.run();
  EXPECT_TRUE(timed_out);
  EXPECT_TRUE(woken);
}

TEST(DiskFile, ReadsAndWritesWholeOrNotAtAll) {
  const UniqueFd file = open_unnamed("/tmp");
  ASSERT_TRUE(file.is_valid());
  struct stat info {};
  ASSERT_EQ(fstat(file.get(), &info), 0);
  EXPECT_EQ(info.st_nlink, 0U) << "it has no name";
  EXPECT_EQ(write_at(file.get(), "hello", 3), 0);
  std::string text(5, ' ');
  EXPECT_EQ(read_at(file.get(), text.data(), 5, 3), 0);
  EXPECT_EQ(text, "hello");
  EXPECT_EQ(read_at(file.get(), text.data(), 5, 4), EIO);
  EXPECT_EQ(write_at(-1, "x", 0), EBADF);
  EXPECT_FALSE(open_unnamed("/tmp/no/such/folder").is_valid());
}

}  // namespace
}  // namespace hvd
