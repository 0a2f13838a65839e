#include "runtime/flight_recorder.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

namespace hvd {
namespace {

using std::chrono::milliseconds;
using Json = nlohmann::json;

TEST(FlightRecorder, NumbersCollectivesFromOneAndKeepsTheirStates) {
  FlightRecorder recorder(8);
  EXPECT_EQ(recorder.schedule("nccl:all_reduce", 0, 100, milliseconds(600)), 1U);
  EXPECT_EQ(recorder.schedule("tcp:broadcast", -1, 7, milliseconds(5)), 2U);
  EXPECT_EQ(recorder.schedule("tcp:barrier", -1, 0, milliseconds(5)), 3U);
  recorder.mark_started(1, Nanos(10));
  recorder.mark_completed(1, Nanos(30));
  recorder.mark_started(2, Nanos(40));
  const auto entries = recorder.entries();
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].state, FlightState::kCompleted);
  EXPECT_EQ(entries[0].started, Nanos(10));
  EXPECT_EQ(entries[0].completed, Nanos(30));
  EXPECT_EQ(entries[1].state, FlightState::kStarted);
  EXPECT_EQ(entries[2].state, FlightState::kScheduled);
  EXPECT_EQ(entries[2].operation, "tcp:barrier");
}

TEST(FlightRecorder, AStateNeverGoesBack) {
  FlightRecorder recorder(4);
  recorder.schedule("nccl:all_reduce", 0, 1, milliseconds(1));
  recorder.mark_completed(1, Nanos(5));
  recorder.mark_started(1, Nanos(6));
  recorder.mark_completed(1, Nanos(7));
  EXPECT_EQ(recorder.entries().front().state, FlightState::kCompleted);
  EXPECT_EQ(recorder.entries().front().completed, Nanos(5));
}

TEST(FlightRecorder, KeepsTheLastOldestFirstAndIgnoresWhatHasLeft) {
  for (const std::uint64_t count : {1U, 3U, 4U, 5U, 8U, 11U}) {
    FlightRecorder recorder(4);
    for (std::uint64_t i = 1; i <= count; ++i) {
      recorder.schedule("op" + std::to_string(i), 0, i, milliseconds(1));
    }
    recorder.mark_started(0, Nanos(1));
    recorder.mark_started(count + 1, Nanos(1));
    if (count > 4) recorder.mark_completed(count - 4, Nanos(1));
    recorder.mark_started(count, Nanos(9));
    const auto entries = recorder.entries();
    ASSERT_EQ(entries.size(), std::min<std::uint64_t>(count, 4));
    for (std::size_t i = 0; i < entries.size(); ++i) {
      EXPECT_EQ(entries[i].sequence, count - entries.size() + 1 + i);
      EXPECT_EQ(entries[i].state,
                i + 1 == entries.size() ? FlightState::kStarted : FlightState::kScheduled);
    }
  }
}

TEST(FlightRecorder, DumpHasTheFieldNamesOfPyTorchsRecorder) {
  FlightRecorder recorder(4);
  recorder.schedule("nccl:all_reduce", 3, 1048576, milliseconds(600000));
  recorder.schedule("bad \xff name", -1, 0, milliseconds(1));
  recorder.mark_started(1, Nanos(1000));
  const Json dump = Json::parse(recorder.json({3, 8, 2, "node\"2"}));
  EXPECT_EQ(dump["version"], "1.0");
  EXPECT_EQ(dump["rank"], 3);
  EXPECT_EQ(dump["size"], 8);
  EXPECT_EQ(dump["generation"], 2);
  EXPECT_EQ(dump["host"], "node\"2");
  ASSERT_EQ(dump["entries"].size(), 2U);
  const Json& first = dump["entries"][0];
  EXPECT_EQ(first["collective_seq_id"], 1);
  EXPECT_EQ(first["profiling_name"], "nccl:all_reduce");
  EXPECT_EQ(first["bucket"], 3);
  EXPECT_EQ(first["bytes"], 1048576);
  EXPECT_EQ(first["state"], "started");
  EXPECT_GT(first["time_created_ns"], 0);
  EXPECT_EQ(first["time_discovered_started_ns"], 1000);
  EXPECT_TRUE(first["time_discovered_completed_ns"].is_null());
  EXPECT_EQ(first["timeout_ms"], 600000);
  EXPECT_TRUE(dump["entries"][1]["bucket"].is_null());
}

TEST(FlightRecorder, ThreadsMayScheduleAndDumpAtOnce) {
  FlightRecorder recorder(16);
  std::thread writer([&recorder] {
    for (int i = 0; i < 5000; ++i) {
      recorder.mark_completed(recorder.schedule("op", i, 1, milliseconds(1)), Nanos(1));
    }
  });
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(Json::accept(recorder.json({})));
  writer.join();
  EXPECT_EQ(recorder.entries().back().sequence, 5000U);
}

}  // namespace
}  // namespace hvd
