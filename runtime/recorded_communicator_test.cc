#include "runtime/recorded_communicator.h"

#include <gmock/gmock.h>

namespace hvd {
namespace {

class RecordedCommunicatorTest : public testing::Test {
 protected:
  FlightRecorder recorder_;
  ActivityBoard board_;
  RecordedCommunicator communicator_{single_communicator(), recorder_, board_};
};

TEST_F(RecordedCommunicatorTest, EveryOperationIsRecordedAsComplete) {
  float data[2] = {1, 2};
  float all[2] = {};
  ASSERT_TRUE(communicator_.all_reduce(data, 2, DataType::kFloat32, {}, {}));
  ASSERT_TRUE(communicator_.broadcast(data, 2, DataType::kFloat32, 0, {}));
  ASSERT_TRUE(communicator_.all_gather(data, all, 2, DataType::kFloat32, {}));
  ASSERT_TRUE(communicator_.reduce_scatter(data, all, 2, DataType::kFloat32, {}, {}));
  ASSERT_TRUE(communicator_.barrier({}));
  ASSERT_TRUE(communicator_.finalize({}));
  EXPECT_EQ(all[1], 2);
  std::vector<std::string> names;
  for (const FlightEntry& entry : recorder_.entries()) {
    names.push_back(entry.operation);
    EXPECT_EQ(entry.state, FlightState::kCompleted);
  }
  EXPECT_THAT(names, testing::ElementsAre("tcp:all_reduce", "tcp:broadcast", "tcp:all_gather",
                                          "tcp:reduce_scatter", "tcp:barrier", "tcp:finalize"));
  EXPECT_EQ(recorder_.entries().front().num_bytes, 8U);
  EXPECT_EQ(board_.read().scheduled, 6U);
  EXPECT_EQ(board_.read().completed, 6U);
  EXPECT_EQ(board_.read().waiting_for, "");
}

TEST_F(RecordedCommunicatorTest, WhatFailedStaysInFlight) {
  communicator_.abort("for the test");
  EXPECT_TRUE(communicator_.failure());
  EXPECT_FALSE(communicator_.barrier({}));
  EXPECT_EQ(recorder_.entries().back().state, FlightState::kStarted);
  EXPECT_EQ(board_.read().scheduled, 1U);
  EXPECT_EQ(board_.read().completed, 0U);
  EXPECT_EQ(board_.read().waiting_for, "barrier");
}

TEST_F(RecordedCommunicatorTest, TheCallersOwnWordsStay) {
  board_.update([](Activity& activity) { activity.waiting_for = "all_reduce of bucket 3"; });
  ASSERT_TRUE(communicator_.barrier({}));
  EXPECT_EQ(board_.read().waiting_for, "all_reduce of bucket 3");
}

}  // namespace
}  // namespace hvd
