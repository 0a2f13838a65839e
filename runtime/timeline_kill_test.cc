// A timeline's file when its process is killed at any moment, and when its disk is full.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "base/log.h"
#include "runtime/timeline.h"
#include "tests/support/trace_file.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using Json = nlohmann::json;

TimelineOptions options_for(const std::string& path) {
  TimelineOptions options;
  options.path = path;
  options.write_period = milliseconds(1);
  return options;
}

class TimelineKill : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string folder_ = fs::temp_directory_path() / "hvdrun-kill-XXXXXX";
};

// Tells events for ever, some hundred writes a second.
[[noreturn]] void write_for_ever(const std::string& path) {
  const auto timeline = Timeline::open(options_for(path));
  if (!timeline) _exit(1);
  for (std::uint64_t step = 0;; ++step) {
    const Nanos now = boottime_now();
    (*timeline)->start_step(step, now);
    (*timeline)->span(static_cast<int>(step % 8), "NCCL_ALLREDUCE", now, boottime_now());
    std::this_thread::sleep_for(microseconds(500));
  }
}

TEST_F(TimelineKill, FileParsesAfterAKillAtAnyMoment) {
  std::mt19937 random(20240607);
  std::uniform_int_distribution<int> lifetime(0, 60000);
  std::size_t num_events = 0;
  int num_files = 0;
  for (int i = 0; i < 50; ++i) {
    const std::string path = folder_ + "/" + std::to_string(i) + ".json";
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) write_for_ever(path);
    std::this_thread::sleep_for(microseconds(lifetime(random)));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child failed by itself";
    if (!fs::exists(path) || fs::file_size(path) == 0) continue;  // killed before its first write
    ++num_files;
    const Json trace = read_trace(path);
    ASSERT_TRUE(trace.is_array()) << path;
    num_events += trace.size();
  }
  EXPECT_GT(num_files, 30);
  EXPECT_GT(num_events, 500U);
}

// A limit of file size stands for a full disk: a write ends in the middle, the next one fails.
// Each of the flushes is one write of that many events.
[[noreturn]] void write_until_full(const std::string& path, const std::string& log_path,
                                   rlim_t num_bytes, int num_flushes, int num_events) {
  signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{num_bytes, num_bytes};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(1);
  set_log_sink([&log_path](LogLevel, std::string_view text) {
    std::ofstream(log_path, std::ios::app) << text << '\n';
  });
  {
    const auto timeline = Timeline::open(options_for(path));
    if (!timeline) _exit(2);
    for (int i = 0; i < num_flushes; ++i) {
      for (int k = 0; k < num_events; ++k) (*timeline)->instant(0, "MARK", boottime_now());
      (*timeline)->flush();
    }
  }
  _exit(0);
}

TEST_F(TimelineKill, AFullDiskLeavesAValidFileAndOneWarning) {
  const std::string path = folder_ + "/full.json";
  const std::string log_path = folder_ + "/log";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) write_until_full(path, log_path, 10000, 50, 10);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  ASSERT_EQ(WEXITSTATUS(status), 0);
  const Json trace = read_trace(path);
  ASSERT_TRUE(trace.is_array());
  EXPECT_GT(trace.size(), 50U);
  std::ifstream log_file(log_path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(log_file, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("rank 0: the timeline ends here: " + path + " cannot be written"),
            std::string::npos)
      << lines[0];
}

TEST_F(TimelineKill, OfAWriteThatIsTooLargeForTheDiskTheFirstEventsAreKept) {
  const std::string path = folder_ + "/large.json";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) write_until_full(path, folder_ + "/log", 20000, 1, 1000);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  const Json trace = read_trace(path);
  ASSERT_TRUE(trace.is_array());
  EXPECT_GT(trace.size(), 100U);
  EXPECT_LE(std::filesystem::file_size(path), 20000U);
}

}  // namespace
}  // namespace hvd
