#include "launcher/events.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/log.h"
#include "base/unique_fd.h"

namespace hvd {
namespace {

using nlohmann::ordered_json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

class ScratchFolder {
 public:
  ScratchFolder() { EXPECT_NE(::mkdtemp(path_.data()), nullptr); }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_ = std::filesystem::temp_directory_path() / "hvdrun_events_XXXXXX";
};

std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

void flush(Loop& loop, EventLog& events) {
  boost::asio::co_spawn(
      loop,
      [&events]() -> Task<void> {
        const bool is_written =
            co_await events.flush(std::chrono::steady_clock::now() + seconds(3));
        EXPECT_TRUE(is_written);
      },
      boost::asio::detached);
  loop.restart();
  loop.run();
}

TEST(Events, ALineIsOneObjectWithItsTimes) {
  EXPECT_EQ(event_line("rank_start", {{"rank", 3}, {"host", "node1"}},
                       seconds(1769875559) + milliseconds(7), milliseconds(1250)),
            "{\"time\":\"2026-01-31T16:05:59.007Z\",\"monotonic_ms\":1250,\"event\":\"rank_start\","
            "\"rank\":3,\"host\":\"node1\"}\n");
}

TEST(Events, BytesThatAreNoTextKeepALineValid) {
  const std::string line = event_line("end", {{"text", "a\xff\nb"}}, seconds(1), seconds(1));
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_TRUE(ordered_json::accept(line));
}

TEST(Events, GoToTheFileAnew) {
  const ScratchFolder folder;
  std::ofstream(folder.file("events")) << "of an earlier run\n";
  const auto fd = open_events(folder.file("events"));
  ASSERT_TRUE(fd);
  Loop loop;
  EventLog events(loop, *fd);
  events.emit("phase", {{"phase", "running"}});
  events.emit("end", {{"code", 0}});
  flush(loop, events);
  const std::string text = content_of(folder.file("events"));
  EXPECT_THAT(text, HasSubstr("\"phase\":\"running\"}\n"));
  EXPECT_THAT(text, HasSubstr("\"event\":\"end\""));
  EXPECT_EQ(text.front(), '{');
}

TEST(Events, APipeWithoutAReaderIsRefusedAtOnce) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  const auto fd = open_events(folder.file("pipe"));
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().code, ExitCode::kUsage);
  EXPECT_THAT(fd.error().message, HasSubstr("start its reader first"));
}

TEST(Events, AReaderThatGoesAndAFullDiskAreOneWarningEach) {
  ::signal(SIGPIPE, SIG_IGN);
  std::string said;
  set_log_sink([&said](LogLevel, std::string_view line) { said += std::string(line) + '\n'; });
  Loop loop;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::close(ends[0]);
  EventLog gone(loop, ends[1]);
  gone.emit("phase", {});
  gone.emit("end", {});
  flush(loop, gone);
  EXPECT_EQ(said,
            "--events cannot be written any more: its reader has gone; the job goes on "
            "without it\n");
  said.clear();
  const auto full = open_events("/dev/full");
  ASSERT_TRUE(full);
  EventLog disk(loop, *full);
  disk.emit("phase", {});
  flush(loop, disk);
  set_log_sink(nullptr);
  EXPECT_THAT(said, HasSubstr("No space left on device"));
}

TEST(Events, ASlowReaderCostsLinesThatAreCounted) {
  Loop loop;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  EventLog events(loop, ends[1]);
  const std::string filler(100000, 'x');
  for (int i = 0; i < 60; ++i) events.emit("gpu_stats", {{"text", filler}});
  std::string text;
  std::string block(1 << 20, '\0');
  const auto read_until = [&](const std::function<bool()>& is_enough) {
    while (!is_enough()) {
      const ssize_t n = ::read(reader.get(), block.data(), block.size());
      ASSERT_GT(n, 0);
      text.append(block, 0, static_cast<std::size_t>(n));
      loop.restart();
      loop.poll();  // the log hears what has been written
    }
  };
  read_until([&text] { return text.size() > 2U << 20U; });
  events.emit("end", {});
  read_until([&text] { return text.find("\"event\":\"end\"") != std::string::npos; });
  const std::size_t at = text.find("\"lines\":");
  ASSERT_NE(at, std::string::npos);
  EXPECT_GT(std::stoi(text.substr(at + 8)), 10);
}

}  // namespace
}  // namespace hvd
