#include "launcher/input_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace hvd {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

class InputReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    read_end_.reset(ends[0]);
    write_end_.reset(ends[1]);
    reader_.emplace(loop_, read_end_.get(), [this](std::string data, bool is_end, int error) {
      EXPECT_FALSE(is_end_) << "something came behind the end";
      got_ += data;
      is_end_ = is_end;
      error_ = error;
    });
  }
  void write(const std::string& text) const {
    ASSERT_EQ(::write(write_end_.get(), text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }
  template <typename Predicate>
  bool run_until(Predicate holds, Nanos patience = seconds(5)) {
    const auto work = boost::asio::make_work_guard(loop_);
    loop_.restart();
    const SteadyTime end = steady_clock::now() + patience;
    while (!holds() && steady_clock::now() < end) loop_.run_for(std::chrono::milliseconds(10));
    return holds();
  }

  Loop loop_;
  UniqueFd read_end_;
  UniqueFd write_end_;
  std::string got_;
  bool is_end_ = false;
  int error_ = 0;
  std::optional<InputReader> reader_;
};

TEST_F(InputReaderTest, ReadsAsMuchAsIsGrantedAndNoMore) {
  write("0123456789");
  EXPECT_FALSE(run_until([this] { return !got_.empty(); }, std::chrono::milliseconds(50)));
  reader_->grant(4);
  EXPECT_TRUE(run_until([this] { return got_ == "0123"; }));
  EXPECT_FALSE(run_until([this] { return got_.size() > 4; }, std::chrono::milliseconds(50)));
  reader_->grant(100);
  EXPECT_TRUE(run_until([this] { return got_ == "0123456789"; }));
  EXPECT_FALSE(is_end_);
}

TEST_F(InputReaderTest, PassesTheEndOn) {
  write("last words");
  write_end_.reset();
  reader_->grant(1000);
  EXPECT_TRUE(run_until([this] { return is_end_; }));
  EXPECT_EQ(got_, "last words");
  EXPECT_EQ(error_, 0);
}

TEST_F(InputReaderTest, AnErrorIsAnEndWithItsNumber) {
  const int folder = open("/", O_RDONLY | O_CLOEXEC);
  InputReader broken(loop_, folder, [this](const std::string&, bool is_end, int error) {
    is_end_ = is_end;
    error_ = error;
  });
  broken.grant(10);
  EXPECT_TRUE(run_until([this] { return is_end_; }));
  EXPECT_EQ(error_, EISDIR);
  close(folder);
}

TEST_F(InputReaderTest, AStoppedOneSaysNothingAndItsEndWaitsForNobody) {
  reader_->grant(1000);
  reader_->stop();
  write("late");
  EXPECT_FALSE(run_until([this] { return !got_.empty(); }, std::chrono::milliseconds(300)));
  const SteadyTime before = steady_clock::now();
  reader_.reset();
  EXPECT_LT(steady_clock::now() - before, std::chrono::milliseconds(100));
}

}  // namespace
}  // namespace hvd
