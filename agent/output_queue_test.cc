#include "agent/output_queue.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "agent/spool.h"
#include "tests/support/temporary_folder.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;
namespace v1 = hvdrun::v1;

using SpoolTest = TemporaryFolder;

TEST_F(SpoolTest, GivesBackInOrderAcrossFilesAndLeavesNoName) {
  Spool spool(path_, 1u << 30);
  const std::string filler(1u << 20, 'x');
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(spool.append(std::to_string(i) + filler));
  EXPECT_TRUE(fs::is_empty(path_));
  for (int i = 0; i < 20; ++i) {
    const auto record = spool.take();
    ASSERT_TRUE(record);
    EXPECT_EQ(*record, std::to_string(i) + filler);
  }
  EXPECT_TRUE(spool.is_empty());
  EXPECT_EQ(spool.num_bytes(), 0u);
  EXPECT_FALSE(spool.take());
}

TEST_F(SpoolTest, RefusesBeyondTheCapAndGoesOnAfterReading) {
  Spool spool(path_, 100);
  EXPECT_TRUE(spool.append(std::string(80, 'a')));
  EXPECT_FALSE(spool.append(std::string(80, 'b')));
  EXPECT_EQ(spool.take()->size(), 80u);
  EXPECT_TRUE(spool.append(std::string(80, 'c')));
  EXPECT_EQ(*spool.take(), std::string(80, 'c'));
}

TEST_F(SpoolTest, LastWordsFindRoomWhenTheFolderIsGone) {
  Spool unused(path_, 1U << 30U);
  Spool used(path_, 1U << 30U);
  const std::string filler(1U << 20U, 'x');
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(used.append(filler));
  fs::remove_all(path_);
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(unused.append(filler)) << i;
    EXPECT_TRUE(used.append(filler)) << i;
  }
  EXPECT_EQ(*unused.take(), filler);
}

TEST(SpoolWithoutFolder, RefusesInsteadOfFailing) {
  Spool spool("/no/such/folder", 1000);
  EXPECT_FALSE(spool.append("x"));
  EXPECT_TRUE(spool.is_empty());
}

v1::LogChunk make_chunk(std::uint32_t rank, std::string data, bool eof = false) {
  v1::LogChunk chunk;
  chunk.set_rank(rank);
  chunk.set_stream(v1::STREAM_STDOUT);
  chunk.set_data(std::move(data));
  chunk.set_eof(eof);
  return chunk;
}

TEST_F(SpoolTest, QueueSendsNothingWithoutCreditAndSplitsToFit) {
  OutputQueue queue(Spool(path_, 0), {});
  queue.push(make_chunk(0, "hello", true));
  EXPECT_EQ(queue.next_batch().chunks_size(), 0);
  queue.add_credit(2);
  const auto first = queue.next_batch();
  ASSERT_EQ(first.chunks_size(), 1);
  EXPECT_EQ(first.chunks(0).data(), "he");
  EXPECT_FALSE(first.chunks(0).eof());
  queue.add_credit(100);
  const auto second = queue.next_batch();
  ASSERT_EQ(second.chunks_size(), 1);
  EXPECT_EQ(second.chunks(0).data(), "llo");
  EXPECT_TRUE(second.chunks(0).eof());
  EXPECT_TRUE(queue.is_empty());
  EXPECT_EQ(queue.memory_bytes(), 0u);
}

TEST_F(SpoolTest, QueueKeepsTheOrderThroughTheSpool) {
  OutputQueue::Limits limits;
  limits.memory_bytes = 2000;
  limits.batch_bytes = 1000;
  OutputQueue queue(Spool(path_, 1u << 20), limits);
  std::string sent;
  for (int i = 0; i < 500; ++i) {
    const std::string line = std::to_string(i) + "\n";
    sent += line;
    queue.push(make_chunk(0, line));
  }
  EXPECT_GT(queue.spooled_bytes(), 0u);
  EXPECT_LE(queue.memory_bytes(), 2000u);
  queue.add_credit(1u << 20);
  std::string received;
  while (!queue.is_empty()) {
    const v1::OutputReply batch = queue.next_batch();
    for (const auto& chunk : batch.chunks()) received += chunk.data();
  }
  EXPECT_EQ(received, sent);
}

TEST_F(SpoolTest, QueueCountsWhatItDropsAndKeepsTheEnd) {
  OutputQueue::Limits limits;
  limits.memory_bytes = 300;
  OutputQueue queue(Spool(path_, 0), limits);
  queue.push(make_chunk(0, std::string(100, 'a')));
  queue.push(make_chunk(0, std::string(100, 'b')));
  queue.push(make_chunk(1, std::string(200, 'c')));
  queue.push(make_chunk(0, std::string(50, 'd'), true));
  queue.add_credit(1000);
  std::uint64_t dropped = 0;
  bool is_ended = false;
  std::string data;
  while (!queue.is_empty()) {
    const v1::OutputReply batch = queue.next_batch();
    for (const auto& chunk : batch.chunks()) {
      data += chunk.data();
      dropped += chunk.dropped();
      is_ended |= chunk.eof();
    }
  }
  EXPECT_EQ(data, std::string(100, 'a'));
  EXPECT_EQ(dropped, 150u);
  EXPECT_TRUE(is_ended);
}

}  // namespace
}  // namespace hvd
