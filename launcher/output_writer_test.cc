#include "launcher/output_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "base/unique_fd.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Pipe {
  Pipe() {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) std::abort();
    read.reset(fds[0]);
    write.reset(fds[1]);
  }
  std::string read_some(std::size_t size) {
    std::string bytes(size, '\0');
    const ssize_t n = ::read(read.get(), bytes.data(), size);
    bytes.resize(n > 0 ? n : 0);
    return bytes;
  }
  UniqueFd read;
  UniqueFd write;
};

OutputBatch both(std::string out, std::string err) {
  return {{false, std::move(out)}, {true, std::move(err)}};
}

class OutputWriterTest : public testing::Test {
 protected:
  bool flush(OutputWriter& writer, SteadyTime::duration limit) {
    bool done = false;
    loop_.restart();
    boost::asio::co_spawn(
        loop_,
        [&]() -> Task<> { done = co_await writer.flush(std::chrono::steady_clock::now() + limit); },
        boost::asio::detached);
    loop_.run();
    return done;
  }

  Loop loop_;
  Pipe out_;
  Pipe err_;
  std::vector<std::pair<bool, int>> broken_;
  OutputWriter::OnBroken on_broken_ = [this](bool is_stderr, int error) {
    broken_.emplace_back(is_stderr, error);
  };
};

TEST_F(OutputWriterTest, WritesInOrderAndTellsWhatIsWritten) {
  OutputWriter writer(loop_, out_.write.get(), err_.write.get(), on_broken_);
  std::vector<int> written;
  writer.submit(both("a\n", "x\n"), [&] { written.push_back(1); });
  writer.submit({}, [&] { written.push_back(0); });
  writer.submit(both("b\n", "y\n"), [&] { written.push_back(2); });
  EXPECT_EQ(writer.num_queued(), 8U);
  EXPECT_TRUE(flush(writer, seconds(20)));
  EXPECT_EQ(writer.num_queued(), 0U);
  EXPECT_THAT(written, testing::UnorderedElementsAre(0, 1, 2));
  EXPECT_EQ(out_.read_some(100), "a\nb\n");
  EXPECT_EQ(err_.read_some(100), "x\ny\n");
  EXPECT_TRUE(broken_.empty());
}

TEST_F(OutputWriterTest, AStalledReaderStallsNeitherTheLoopNorTheOtherStream) {
  OutputWriter writer(loop_, out_.write.get(), err_.write.get(), on_broken_);
  const std::string flood(1024 * 1024, 'x');
  bool out_written = false;
  bool err_written = false;
  writer.submit({{false, flood}}, [&] { out_written = true; });
  writer.submit({{true, "error\n"}}, [&] { err_written = true; });
  EXPECT_EQ(err_.read_some(100), "error\n");
  EXPECT_FALSE(flush(writer, milliseconds(100)));
  EXPECT_TRUE(err_written);
  EXPECT_FALSE(out_written);
  EXPECT_EQ(writer.num_queued(), flood.size());
  for (std::size_t num_read = 0; num_read < flood.size();) {
    num_read += out_.read_some(65536).size();
  }
  EXPECT_TRUE(flush(writer, seconds(20)));
  EXPECT_TRUE(out_written);
}

TEST_F(OutputWriterTest, AGoneReaderIsToldOnceAndWhatFollowsCountsAsWritten) {
  OutputWriter writer(loop_, out_.write.get(), err_.write.get(), on_broken_);
  out_.read.reset();
  int num_written = 0;
  for (int i = 0; i < 5; ++i) writer.submit(both("a\n", "x\n"), [&] { ++num_written; });
  EXPECT_TRUE(flush(writer, seconds(20)));
  EXPECT_EQ(num_written, 5);
  EXPECT_THAT(broken_, testing::ElementsAre(std::pair(false, EPIPE)));
  EXPECT_EQ(err_.read_some(100), "x\nx\nx\nx\nx\n");
}

TEST_F(OutputWriterTest, ADescriptorThatSomebodyMadeNonBlockingLosesNothing) {
  ::fcntl(out_.write.get(), F_SETFL, O_NONBLOCK);
  OutputWriter writer(loop_, out_.write.get(), err_.write.get(), on_broken_);
  writer.submit({{false, std::string(300'000, 'x')}}, {});
  for (std::size_t num_read = 0; num_read < 300'000;) num_read += out_.read_some(65536).size();
  EXPECT_TRUE(flush(writer, seconds(20)));
  EXPECT_TRUE(broken_.empty());
}

TEST_F(OutputWriterTest, OneSinkForBothKeepsTheOrder) {
  const UniqueFd copy(::dup(out_.write.get()));
  EXPECT_TRUE(sink_traits(out_.write.get(), copy.get()).is_same_sink);
  EXPECT_FALSE(sink_traits(out_.write.get(), err_.write.get()).is_same_sink);
  OutputWriter writer(loop_, out_.write.get(), copy.get(), on_broken_);
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    writer.submit({{i % 2 == 0, std::to_string(i) + "\n"}}, {});
    expected += std::to_string(i) + "\n";
  }
  EXPECT_TRUE(flush(writer, seconds(20)));
  EXPECT_EQ(out_.read_some(4096), expected);
}

TEST_F(OutputWriterTest, GoesWhileItsThreadIsStuckAndNothingIsCalledAfterwards) {
  bool was_called = false;
  {
    OutputWriter writer(loop_, out_.write.get(), err_.write.get(), on_broken_);
    writer.submit({{false, std::string(1024 * 1024, 'x')}}, [&] { was_called = true; });
    EXPECT_FALSE(flush(writer, milliseconds(50)));
  }
  // The stuck thread gets its error, and finds nobody to tell it to.
  out_.read.reset();
  loop_.restart();
  loop_.run_for(milliseconds(50));
  EXPECT_FALSE(was_called);
  EXPECT_TRUE(broken_.empty());
  (void)out_.write.release();  // the thread may still be about to write
}

}  // namespace
}  // namespace hvd
