#include "agent/shim/log_pump.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

namespace hvd {
namespace {

using hvdrun::v1::LogChunk;
using std::chrono::seconds;

struct TestPipe {
  UniqueFd read_end;
  UniqueFd write_end;
  TestPipe() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
    fcntl(ends[0], F_SETPIPE_SZ, 1 << 20);
  }
  void write_bytes(std::size_t n) const {
    const std::string bytes(n, 'x');
    ASSERT_EQ(write(write_end.get(), bytes.data(), n), static_cast<ssize_t>(n));
  }
};

class LogPumpTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(poller.open()); }
  LogPump make(std::uint64_t window) {
    return {poller, window, [this](LogChunk chunk) { chunks.push_back(std::move(chunk)); }};
  }
  void settle(LogPump& pump, Nanos now = Nanos(0)) {
    poller.run_once(true);
    pump.run(now);
    while (pump.is_busy()) pump.run(now);
  }
  std::uint64_t bytes_of(std::uint32_t rank) const {
    std::uint64_t n = 0;
    for (const LogChunk& chunk : chunks) n += chunk.rank() == rank ? chunk.data().size() : 0;
    return n;
  }
  int num_ends() const {
    int n = 0;
    for (const LogChunk& chunk : chunks) n += chunk.eof() ? 1 : 0;
    return n;
  }

  Poller poller;
  std::vector<LogChunk> chunks;
};

TEST_F(LogPumpTest, ReadsNothingBeyondTheWindowUntilItIsAcknowledged) {
  LogPump pump = make(100'000);
  TestPipe pipe;
  pipe.write_bytes(300'000);
  pump.add(0, hvdrun::v1::STREAM_STDOUT, std::move(pipe.read_end));
  settle(pump);
  EXPECT_EQ(bytes_of(0), 100'000U);
  pump.acknowledge(60'000);
  settle(pump);
  EXPECT_EQ(bytes_of(0), 160'000U);
  pump.acknowledge(1'000'000);
  settle(pump);
  EXPECT_EQ(bytes_of(0), 260'000U) << "an ack of more than is out opens no more than the window";
}

TEST_F(LogPumpTest, NoChunkIsLargerThan64KiB) {
  LogPump pump = make(1 << 20);
  TestPipe pipe;
  pipe.write_bytes(200'000);
  pump.add(0, hvdrun::v1::STREAM_STDERR, std::move(pipe.read_end));
  settle(pump);
  EXPECT_EQ(bytes_of(0), 200'000U);
  for (const LogChunk& chunk : chunks) EXPECT_LE(chunk.data().size(), 65536U);
}

TEST_F(LogPumpTest, AScarceWindowIsSharedInTurn) {
  LogPump pump = make(4 * 65536);
  std::vector<TestPipe> pipes(4);
  for (std::uint32_t rank = 0; rank < pipes.size(); ++rank) {
    pipes[rank].write_bytes(300'000);
    pump.add(rank, hvdrun::v1::STREAM_STDOUT, std::move(pipes[rank].read_end));
  }
  settle(pump);
  for (std::uint32_t rank = 0; rank < pipes.size(); ++rank) {
    EXPECT_EQ(bytes_of(rank), 65536U) << "rank " << rank;
  }
}

TEST_F(LogPumpTest, EachStreamEndsWithOneEndAfterItsBytes) {
  LogPump pump = make(1 << 20);
  TestPipe pipe;
  pipe.write_bytes(10);
  pump.add(0, hvdrun::v1::STREAM_STDOUT, std::move(pipe.read_end));
  pipe.write_end.reset();
  settle(pump);
  ASSERT_EQ(chunks.size(), 2U);
  EXPECT_FALSE(chunks[0].eof());
  EXPECT_TRUE(chunks[1].eof());
  EXPECT_TRUE(chunks[1].data().empty());
  EXPECT_TRUE(pump.is_done());
}

TEST_F(LogPumpTest, APipeThatSomebodyHoldsIsReadUntilTheDeadlineOnly) {
  LogPump pump = make(1 << 20);
  TestPipe pipe;
  pump.add(0, hvdrun::v1::STREAM_STDOUT, std::move(pipe.read_end));
  settle(pump, seconds(1));
  pump.end_rank(0, seconds(3));
  pump.end_rank(0, seconds(9));
  EXPECT_EQ(pump.next_deadline(), seconds(3)) << "a deadline only comes nearer";
  pipe.write_bytes(10);
  settle(pump, seconds(2));
  EXPECT_EQ(bytes_of(0), 10U);
  EXPECT_EQ(num_ends(), 0);
  pipe.write_bytes(7);
  settle(pump, seconds(3));
  EXPECT_EQ(bytes_of(0), 17U) << "what the pipe held at the deadline still counts";
  EXPECT_EQ(num_ends(), 1);
  EXPECT_TRUE(pump.is_done());
}

TEST_F(LogPumpTest, TheDeadlineDropsNothingWhileTheWindowIsClosed) {
  LogPump pump = make(10);
  TestPipe pipe;
  pipe.write_bytes(25);
  pump.add(0, hvdrun::v1::STREAM_STDOUT, std::move(pipe.read_end));
  pump.end_rank(0, seconds(1));
  settle(pump, seconds(2));
  EXPECT_EQ(bytes_of(0), 10U);
  pipe.write_bytes(100);  // after the deadline: not the rank's any more
  for (int i = 0; i < 2; ++i) {
    pump.acknowledge(10);
    settle(pump, seconds(3));
  }
  EXPECT_EQ(bytes_of(0), 25U);
  pump.acknowledge(5);
  settle(pump, seconds(3));
  EXPECT_EQ(num_ends(), 1);
}

TEST_F(LogPumpTest, DiscardingReadsOnSilently) {
  LogPump pump = make(10);
  TestPipe pipe;
  pipe.write_bytes(500'000);
  pump.add(0, hvdrun::v1::STREAM_STDOUT, std::move(pipe.read_end));
  pump.discard();
  settle(pump);
  EXPECT_TRUE(chunks.empty());
  pipe.write_bytes(1'000'000);  // would fail if the pipe had not been emptied
  pipe.write_end.reset();
  settle(pump);
  EXPECT_TRUE(pump.is_done());
}

}  // namespace
}  // namespace hvd
