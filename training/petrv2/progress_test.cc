#include "training/petrv2/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "training/formats/test_files.h"

namespace hvd::petrv2 {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr SteadyTime kStart{};

StepReport step_report(std::uint64_t step, double loss = 1, double grad_norm = 2) {
  StepReport report;
  report.step = step;
  report.epoch = 3;
  report.samples_seen = 4 * step;
  report.loss_terms = {{"total", loss}, {"class", loss / 4}, {"box", loss * 3 / 4}};
  report.lr = 2e-4;
  report.grad_norm = grad_norm;
  report.samples_per_s = 8.125;
  report.data_wait_s = 0.25;
  report.memory_bytes = std::uint64_t{5} << 28;
  report.eta_s = 200;
  return report;
}

std::string line_of(const std::vector<StepReport>& reports) {
  StepWindow window;
  for (const StepReport& report : reports) window.add(report);
  return window.line();
}

TEST(StepWindow, GoldenLine) {
  EXPECT_EQ(line_of({step_report(120, 1.23456, 12.34)}),
            "step 120 epoch 3 loss 1.2346 (class 0.3086, box 0.9259) lr 2.00e-04 grad norm 12.3 "
            "8.12 samples/s data wait 0.250 s memory 1.25 GiB ETA 3 min 20 s");
}

TEST(StepWindow, MeansOverItsStepsAndTheLastOfTheRest) {
  StepReport last = step_report(2, 3, 6);
  last.lr = 1e-5;
  last.data_wait_s = 0.75;
  last.samples_per_s = 100;
  EXPECT_THAT(line_of({step_report(1, 1, 2), last}),
              HasSubstr("step 2 epoch 3 loss 2.0000 (class 0.5000, box 1.5000) lr 1.00e-05 grad "
                        "norm 4 100 samples/s data wait 0.500 s"));
}

TEST(StepWindow, ASkippedStepIsCountedAndEntersNoMean) {
  for (const double bad : {kInf, -kInf, kNan}) {
    StepReport skipped = step_report(2, 1, bad);
    skipped.num_skipped = 1;
    EXPECT_THAT(line_of({step_report(1, 1, 2), skipped}),
                testing::AllOf(HasSubstr("grad norm 2 "), HasSubstr(", 1 step skipped")));
    skipped = step_report(2, bad, bad);
    skipped.num_skipped = 2;
    EXPECT_THAT(line_of({step_report(1, 5, 2), skipped}),
                testing::AllOf(HasSubstr("loss 5.0000 (class 1.2500, box 3.7500)"),
                               HasSubstr("2 steps skipped")));
    EXPECT_THAT(line_of({skipped}),
                testing::AllOf(HasSubstr("loss - (class -, box -)"), HasSubstr("grad norm - ")));
  }
  EXPECT_THAT(line_of({step_report(1)}), Not(HasSubstr("skipped")));
}

TEST(StepWindow, OneLossTermNoLossTermAndUnknownEta) {
  StepReport report = step_report(1);
  report.loss_terms = {{"total", 2}};
  EXPECT_THAT(line_of({report}), HasSubstr("loss 2.0000 lr"));
  for (const double eta : {kNan, kInf, -1.0, 1e300}) {
    report.eta_s = eta;
    EXPECT_THAT(line_of({report}), testing::EndsWith("ETA -"));
  }
}

TEST(StepWindow, ClearBeginsAnew) {
  StepWindow window;
  window.add(step_report(1, 100));
  window.clear();
  EXPECT_TRUE(window.is_empty());
  window.add(step_report(2, 1));
  EXPECT_THAT(window.line(), HasSubstr("step 2 epoch 3 loss 1.0000"));
}

TEST(JsonLine, GoldenLineAndNoInfinities) {
  EXPECT_EQ(json_line(step_report(2, 4, 0.5), 1700000000.5),
            R"({"time":1700000000.5,"step":2,"epoch":3,"samples_seen":8,"loss":{"total":4.0,)"
            R"("class":1.0,"box":3.0},"lr":0.0002,"grad_norm":0.5,"num_skipped":0,)"
            R"("samples_per_s":8.125,"data_wait_s":0.25,"memory_bytes":1342177280,"eta_s":200.0})");
  StepReport skipped = step_report(3, kNan, kInf);
  skipped.loss_terms[1].name = "bad \xff\n";
  const std::string line = json_line(skipped, 0);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_TRUE(json["grad_norm"].is_null());
  EXPECT_TRUE(json["loss"]["total"].is_null());
}

TEST(ToScalars, NamesAndNoInfiniteNorm) {
  const auto names = [](const StepReport& report) {
    std::vector<std::string> tags;
    for (const Scalar& scalar : to_scalars(report)) tags.push_back(scalar.tag);
    return tags;
  };
  EXPECT_THAT(names(step_report(1)),
              ElementsAre("loss/total", "loss/class", "loss/box", "optimiser/lr",
                          "optimiser/grad_norm", "optimiser/num_skipped", "speed/samples_per_s",
                          "speed/data_wait_s", "memory/gib"));
  EXPECT_THAT(names(step_report(1, 1, kInf)), Not(testing::Contains("optimiser/grad_norm")));
  EXPECT_EQ(to_scalars(step_report(1)).back().value, 1.25);
}

TEST(StepReport, DetailsAreForJsonAndTensorBoardOnly) {
  StepReport report = step_report(1);
  report.details = {{"class.5", 0.125}};
  EXPECT_EQ(line_of({report}), line_of({step_report(1)}));
  EXPECT_EQ(nlohmann::json::parse(json_line(report, 0))["loss"]["class.5"], 0.125);
  EXPECT_EQ(to_scalars(report)[3].tag, "loss/class.5");
  EXPECT_EQ(to_scalars(report)[3].value, 0.125);
}

TEST(LineSchedule, OneASecondOnATerminalElseByCount) {
  const LineSchedule terminal{true, 50};
  EXPECT_TRUE(terminal.is_due(1, std::nullopt, kStart));
  EXPECT_FALSE(terminal.is_due(1000, kStart, kStart + milliseconds(999)));
  EXPECT_TRUE(terminal.is_due(1, kStart, kStart + milliseconds(1000)));
  const LineSchedule log{false, 50};
  EXPECT_FALSE(log.is_due(49, std::nullopt, kStart));
  EXPECT_FALSE(log.is_due(49, kStart, kStart + milliseconds(9999)));
  EXPECT_TRUE(log.is_due(50, kStart, kStart));
}

// Progress with its streams in files of a folder.
struct Streams {
  TestFolder folder;
  UniqueFd out{::open((folder / "out").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  UniqueFd err{::open((folder / "err").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};

  [[nodiscard]] Progress open(std::string json, std::uint64_t log_every = 2) const {
    auto progress = Progress::open({log_every, std::move(json), out.get(), err.get()});
    EXPECT_TRUE(progress) << progress.error().message;
    return std::move(*progress);
  }
};

// The steps that the lines of a text begin with.
std::vector<std::string> steps_in(const std::string& text) {
  std::vector<std::string> steps;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    steps.push_back(line.substr(0, line.find(' ', 5)));
  }
  return steps;
}

TEST(Progress, OneLineEachSoManyStepsAndTheRestAtTheEnd) {
  const Streams streams;
  Progress progress = streams.open("");
  for (const std::uint64_t step : {1, 2, 3, 4, 5}) {
    ASSERT_TRUE(progress.report(step_report(step), kStart, 0));
  }
  EXPECT_THAT(steps_in(read_file(streams.folder / "out")), ElementsAre("step 2", "step 4"));
  ASSERT_TRUE(progress.finish(kStart));
  ASSERT_TRUE(progress.finish(kStart));
  EXPECT_THAT(steps_in(read_file(streams.folder / "out")),
              ElementsAre("step 2", "step 4", "step 5"));
  EXPECT_EQ(read_file(streams.folder / "err"), "");
}

TEST(Progress, JsonGoesToItsFileStepByStepAndIsAppended) {
  const Streams streams;
  const std::string path = streams.folder / "log.jsonl";
  for (const std::uint64_t step : {1, 2}) {
    Progress progress = streams.open(path);
    ASSERT_TRUE(progress.report(step_report(step), kStart, 5));
    EXPECT_THAT(read_file(path), testing::EndsWith(json_line(step_report(step), 5) + "\n"));
  }
  EXPECT_EQ(read_file(path),
            json_line(step_report(1), 5) + "\n" + json_line(step_report(2), 5) + "\n");
}

TEST(Progress, JsonOnStandardOutputIsAloneThere) {
  const Streams streams;
  Progress progress = streams.open("-", 1);
  ASSERT_TRUE(progress.report(step_report(1), kStart, 5));
  EXPECT_EQ(read_file(streams.folder / "out"), json_line(step_report(1), 5) + "\n");
  EXPECT_THAT(steps_in(read_file(streams.folder / "err")), ElementsAre("step 1"));
}

TEST(Progress, WhatCannotBeWrittenIsToldOnceAndTheRestGoesOn) {
  const Streams streams;
  Progress progress = streams.open("/dev/full", 1);
  const auto first = progress.report(step_report(1), kStart, 5);
  ASSERT_FALSE(first);
  EXPECT_THAT(first.error().message, HasSubstr("cannot write /dev/full: No space left"));
  EXPECT_TRUE(progress.report(step_report(2), kStart, 5));
  EXPECT_THAT(steps_in(read_file(streams.folder / "out")), ElementsAre("step 1", "step 2"));
  EXPECT_FALSE(Progress::open({1, streams.folder / "none/log", 1, 2}));
  EXPECT_FALSE(Progress::open({0, "", 1, 2}));
}

// What a terminal has shown, once so many lines have come (they come one by one).
std::string read_lines(int master, std::ptrdiff_t num_lines) {
  std::string text;
  pollfd ready{master, POLLIN, 0};
  while (std::ranges::count(text, '\n') < num_lines && poll(&ready, 1, 5000) == 1) {
    std::array<char, 4096> buffer{};
    const ssize_t n = read(master, buffer.data(), buffer.size());
    if (n > 0) text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return text;
}

TEST(Progress, OnATerminalOnePlainLineASecond) {
  const UniqueFd master(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  ASSERT_TRUE(master.is_valid() && grantpt(master.get()) == 0 && unlockpt(master.get()) == 0);
  const UniqueFd slave(::open(ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(slave.is_valid());
  auto progress = Progress::open({50, "", slave.get(), 2});
  ASSERT_TRUE(progress);
  for (const int tenth : {0, 5, 9, 10, 15, 21}) {
    ASSERT_TRUE(progress->report(step_report(100 + tenth), kStart + milliseconds(100 * tenth), 0));
  }
  EXPECT_THAT(steps_in(read_lines(master.get(), 3)),
              ElementsAre("step 100", "step 110", "step 121"));
}

}  // namespace
}  // namespace hvd::petrv2
