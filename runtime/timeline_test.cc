#include "runtime/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/json_array_file.h"
#include "runtime/step_window.h"
#include "runtime/trace_event.h"
#include "tests/support/trace_file.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::json;

std::vector<std::string> names_of(const Json& trace) {
  std::vector<std::string> names;
  for (const Json& event : trace) {
    if (event["ph"] != "M") names.push_back(event["name"]);
  }
  return names;
}

class TimelineTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { fs::remove_all(folder_); }

  TimelineOptions options() const {
    TimelineOptions options;
    options.path = folder_ + "/rank3.json";
    options.rank = 3;
    options.host = "node2";
    return options;
  }
  static std::unique_ptr<Timeline> open(TimelineOptions options) {
    auto timeline = Timeline::open(std::move(options));
    EXPECT_TRUE(timeline) << timeline.error().message;
    return timeline ? std::move(*timeline) : nullptr;
  }

  std::string folder_ = fs::temp_directory_path() / "hvdrun-timeline-XXXXXX";
};

TEST_F(TimelineTest, TheFirstWriteLeavesAValidFileWithItsHeader) {
  const Nanos before = boottime_now();
  const auto timeline = open(options());
  const Json trace = read_trace(options().path);
  ASSERT_TRUE(trace.is_array());
  ASSERT_EQ(trace.size(), 4U);
  EXPECT_EQ(trace[0]["name"], "process_name");
  EXPECT_EQ(trace[0]["args"]["name"], "rank 3 on node2");
  EXPECT_EQ(trace[1]["args"]["sort_index"], 3);
  EXPECT_EQ(trace[2]["name"], "clock");
  EXPECT_GE(trace[2]["args"]["boottime_ns"], before.count());
  EXPECT_LE(trace[2]["args"]["boottime_ns"], boottime_now().count());
  EXPECT_NEAR(trace[2]["args"]["start_time_since_epoch_in_micros"].get<double>(),
              static_cast<double>(realtime_now().count()) / 1000, 10e6);
  for (const Json& event : trace) EXPECT_EQ(event["pid"], 3);
}

TEST_F(TimelineTest, TellsSpansInstantsAndTracks) {
  const auto timeline = open(options());
  const Nanos start(read_trace(options().path)[2]["args"]["boottime_ns"].get<std::int64_t>());
  timeline->name_track(7, "bucket 7: a \"quoted\" \xff name\n");
  timeline->span(7, "NCCL_ALLREDUCE", start + Nanos(1500), start + Nanos(12345678),
                 "{\"bytes\":\n 4096}");
  timeline->instant(kStepTrack, "MARK", start + milliseconds(2));
  timeline->span(7, "ALLREDUCE", start - Nanos(500), start, "no object");
  timeline->flush();
  const Json trace = read_trace(options().path);
  ASSERT_EQ(trace.size(), 8U);
  EXPECT_EQ(trace[4]["args"]["name"], "bucket 7: a \"quoted\" \xEF\xBF\xBD name\n");
  EXPECT_EQ(trace[4]["tid"], 8);
  EXPECT_EQ(trace[5], Json::parse(R"({"ts":1.5,"ph":"X","dur":12344.178,"name":"NCCL_ALLREDUCE",
      "pid":3,"tid":8,"args":{"bytes":4096}})"));
  EXPECT_EQ(trace[6]["tid"], 0);
  EXPECT_EQ(trace[6]["ts"], 2000);
  EXPECT_EQ(trace[7]["ts"], -0.5);
  EXPECT_EQ(trace[7]["args"]["text"], "no object");
}

TEST_F(TimelineTest, EachEventIsOneLineWithItsTimeFirst) {
  {
    const auto timeline = open(options());
    for (int i = 0; i < 3; ++i) timeline->instant(0, "a\nb", boottime_now());
  }
  std::istringstream lines(read_text(options().path));
  int num_events = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line == "[" || line == "]") continue;
    if (line.back() == ',') line.pop_back();
    EXPECT_TRUE(Json::accept(line)) << line;
    if (line.rfind("{\"ts\":", 0) == 0) ++num_events;
  }
  EXPECT_EQ(num_events, 3);
}

TEST_F(TimelineTest, WritesByItselfWithinThePeriod) {
  auto settings = options();
  settings.write_period = milliseconds(10);
  const auto timeline = open(settings);
  timeline->instant(0, "MARK", boottime_now());
  for (int i = 0; i < 400 && names_of(read_trace(settings.path)).empty(); ++i) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_THAT(names_of(read_trace(settings.path)), ElementsAre("MARK"));
}

TEST_F(TimelineTest, HoldsItsWindowOfStepsAndSaysWhereItEnds) {
  auto settings = options();
  settings.first_step = 2;
  settings.last_step = 3;
  settings.marks_steps = true;
  const auto timeline = open(settings);
  const Nanos start = boottime_now();
  const auto at = [start](int i) { return start + milliseconds(i); };
  timeline->instant(0, "BEFORE", at(0));
  for (int step = 1; step <= 3; ++step) {
    timeline->start_step(step, at(10 * step));
    timeline->span(0, "STEP" + std::to_string(step), at(10 * step), at(10 * step + 9));
  }
  timeline->start_step(4, at(40));
  timeline->span(0, "LATE3", at(38), at(42));
  timeline->span(0, "STEP4", at(41), at(42));
  timeline->start_step(5, at(50));
  timeline->span(0, "TOO_LATE", at(39), at(51));
  timeline->flush();
  const Json trace = read_trace(settings.path);
  EXPECT_THAT(names_of(trace),
              ElementsAre("CYCLE_START", "STEP2", "CYCLE_START", "STEP3", "LATE3", "TIMELINE_END"));
  EXPECT_EQ(trace[4]["args"]["step"], 2);
  EXPECT_EQ(trace.back()["args"]["reason"], "step 3 was the last that was asked for");
}

TEST(StepWindow, TakesStepsByTheTimeAtWhichEventsBegin) {
  StepWindow all(0, 10);
  EXPECT_TRUE(all.holds(Nanos(-5)));
  StepWindow never(2, 3);
  EXPECT_FALSE(never.holds(Nanos(0)));
  never.start_step(9, Nanos(1));
  EXPECT_TRUE(never.is_over()) << "resumed behind the window";
  StepWindow jump(2, 5);
  jump.start_step(4, Nanos(10));
  EXPECT_TRUE(jump.holds(Nanos(10)));
  EXPECT_FALSE(jump.holds(Nanos(9)));
  jump.start_step(6, Nanos(20));
  EXPECT_TRUE(jump.holds(Nanos(19)));
  EXPECT_FALSE(jump.holds(Nanos(20)));
  EXPECT_TRUE(jump.has_ended());
  EXPECT_FALSE(jump.is_over());
  jump.start_step(7, Nanos(30));
  EXPECT_TRUE(jump.is_over());
}

TEST_F(TimelineTest, EndsAtItsSizeAndSaysSo) {
  auto settings = options();
  settings.max_bytes = 20000;
  const auto timeline = open(settings);
  for (int i = 0; i < 1000; ++i) timeline->instant(0, "MARK", boottime_now());
  timeline->flush();
  const auto size = fs::file_size(settings.path);
  EXPECT_LE(size, settings.max_bytes);
  EXPECT_GT(size, settings.max_bytes * 9 / 10);
  const Json trace = read_trace(settings.path);
  ASSERT_TRUE(trace.is_array());
  EXPECT_EQ(trace.back()["name"], "TIMELINE_END");
  EXPECT_EQ(trace.back()["args"]["reason"], "the bound of 20000 bytes is reached");
  timeline->instant(0, "MARK", boottime_now());
  timeline->flush();
  EXPECT_EQ(fs::file_size(settings.path), size);
}

TEST_F(TimelineTest, ThreadsMayTellAtOnce) {
  {
    const auto timeline = open(options());
    std::vector<std::thread> threads;
    for (int track = 0; track < 4; ++track) {
      threads.emplace_back([&timeline, track] {
        for (int i = 0; i < 500; ++i) {
          timeline->span(track, "SPAN", boottime_now(), boottime_now());
          if (i % 100 == 0) timeline->flush();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(names_of(read_trace(options().path)).size(), 2000U);
}

TEST_F(TimelineTest, RefusesWhatIsNoFile) {
  auto settings = options();
  settings.path = folder_;
  const auto folder = Timeline::open(settings);
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.error().message, HasSubstr("timeline of rank 3: "));
  EXPECT_THAT(folder.error().message, HasSubstr("is a folder"));
  settings.path = folder_ + "/none/rank3.json";
  const auto missing = Timeline::open(settings);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("No such file or directory"));
  settings.path = "/dev/null";
  EXPECT_FALSE(Timeline::open(settings));
  fs::create_symlink("/etc/passwd", folder_ + "/link");
  settings.path = folder_ + "/link";
  EXPECT_FALSE(Timeline::open(settings));
  settings = options();
  settings.max_bytes = 100;
  EXPECT_FALSE(Timeline::open(settings));
  EXPECT_THAT(read_text(options().path), IsEmpty());
}

TEST(JsonArrayFile, IsValidAfterEveryWrite) {
  std::string folder = fs::temp_directory_path() / "hvdrun-array-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/array.json";
  auto file = JsonArrayFile::create(path, "1");
  ASSERT_TRUE(file);
  EXPECT_EQ(read_text(path), "[\n1\n]");
  for (int i = 2; i < 200; ++i) {
    ASSERT_TRUE(file->append(std::to_string(i)));
    const Json array = read_trace(path);
    ASSERT_TRUE(array.is_array());
    EXPECT_EQ(array.size(), static_cast<std::size_t>(i));
    EXPECT_EQ(file->num_bytes(), fs::file_size(path));
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace hvd
