#include "agent/shim/input_feed.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <functional>

namespace hvd {
namespace {

class InputFeedTest : public testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    ASSERT_TRUE(poller_.open());
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    reader_.reset(ends[0]);
    feed_.emplace(poller_, UniqueFd(ends[1]), [this](std::uint64_t taken, bool is_closed) {
      taken_ += taken;
      num_closed_ += is_closed ? 1 : 0;
    });
  }
  // What can be read now; nullopt at the end of file.
  std::optional<std::string> read_some() {
    std::string block(1 << 20, '\0');
    const ssize_t n = read(reader_.get(), block.data(), block.size());
    if (n == 0) return std::nullopt;
    return block.substr(0, n < 0 ? 0 : static_cast<std::size_t>(n));
  }
  void turn() {
    poller_.wake_at(boottime_now() + std::chrono::milliseconds(100));
    poller_.run_once(false);
  }

  Poller poller_;
  UniqueFd reader_;
  std::optional<InputFeed> feed_;
  std::uint64_t taken_ = 0;
  int num_closed_ = 0;
};

TEST_F(InputFeedTest, PassesOnAndEnds) {
  feed_->push("one");
  feed_->push("two");
  feed_->end();
  EXPECT_EQ(read_some(), "onetwo");
  EXPECT_EQ(read_some(), std::nullopt);
  EXPECT_EQ(taken_, 6U);
  EXPECT_EQ(num_closed_, 0);
}

TEST_F(InputFeedTest, WaitsForAReaderThatDoesNotRead) {
  const std::string much(300000, 'x');
  feed_->push(much);
  feed_->end();
  turn();
  EXPECT_LT(taken_, much.size());
  std::size_t num_read = 0;
  while (const auto block = read_some()) {
    num_read += block->size();
    turn();
  }
  EXPECT_EQ(num_read, much.size());
  EXPECT_EQ(taken_, much.size());
}

TEST_F(InputFeedTest, TellsOnceThatTheReaderHasGone) {
  reader_.reset();
  turn();
  EXPECT_EQ(num_closed_, 1);
  feed_->push("late");
  feed_->end();
  EXPECT_EQ(num_closed_, 1);
  EXPECT_EQ(taken_, 0U);
}

TEST_F(InputFeedTest, AReaderThatGoesInTheMiddleEndsIt) {
  feed_->push(std::string(300000, 'x'));
  ASSERT_TRUE(read_some());
  reader_.reset();
  for (int i = 0; i < 5 && num_closed_ == 0; ++i) turn();
  EXPECT_EQ(num_closed_, 1);
}

}  // namespace
}  // namespace hvd
