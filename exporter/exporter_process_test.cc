// The built hvd-exporter beside a stand-in for the agent's socket.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "base/unix_address.h"
#include "tests/support/temporary_folder.h"

namespace hvd {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int kLimitMs = 20'000;

// What comes until the other side closes, or until `mark`; fails at the limit.
std::string read_until(int fd, const std::string& mark) {
  std::string text;
  std::array<char, 4096> buffer;
  while (mark.empty() || text.find(mark) == std::string::npos) {
    pollfd watched{fd, POLLIN, 0};
    if (poll(&watched, 1, kLimitMs) != 1) {
      ADD_FAILURE() << "nothing more after: " << text;
      break;
    }
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return text;
}

// An agent that says to each control line, without its marker, what `answer` gives; an empty answer
// is none, and the connection stays open until the end.
class StandInAgent {
 public:
  using Answer = std::function<std::string(const std::string& line)>;
  StandInAgent(const std::string& path, Answer answer) : answer_(std::move(answer)) {
    const sockaddr_un address = unix_address(path);
    socket_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(socket_.get(), 8), 0);
    thread_ = std::thread([this] { run(); });
  }
  ~StandInAgent() {
    is_over_ = true;
    thread_.join();
  }

 private:
  void run() {
    std::vector<UniqueFd> silent;
    while (!is_over_) {
      pollfd watched{socket_.get(), POLLIN, 0};
      if (poll(&watched, 1, 20) != 1) continue;
      UniqueFd connection(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      const std::string line = read_until(connection.get(), "\n");
      const auto blank = line.find(' ');
      const std::string answer = answer_(line.substr(blank + 1));
      if (answer.empty()) {
        silent.push_back(std::move(connection));
        continue;
      }
      const std::string all = line.substr(0, blank) + " " + answer + "\n";
      // What is too long for it, the exporter does not read to its end.
      EXPECT_GT(send(connection.get(), all.data(), all.size(), MSG_NOSIGNAL), 0);
    }
  }

  Answer answer_;
  UniqueFd socket_;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

class Exporter {
 public:
  explicit Exporter(const std::vector<std::string>& words) {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    stderr_ = UniqueFd(ends[0]);
    const UniqueFd theirs(ends[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDERR_FILENO);
    std::vector<char*> argv = {const_cast<char*>(HVD_EXPORTER_PATH)};
    for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&pid_, HVD_EXPORTER_PATH, &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Exporter() {
    if (pid_ > 0) end(SIGKILL);
  }

  int stderr_fd() const { return stderr_.get(); }

  // The exit code, or 128 and the signal.
  int end(int signal = 0) {
    if (signal != 0) kill(pid_, signal);
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  // Of the line that says where the metrics are.
  std::uint16_t port() {
    const std::string mark = "http://127.0.0.1:";
    const std::string line = read_until(stderr_.get(), "\n");
    const auto at = line.find(mark);
    if (at == std::string::npos) ADD_FAILURE() << line;
    return static_cast<std::uint16_t>(std::stoi(line.substr(at + mark.size())));
  }

 private:
  UniqueFd stderr_;
  pid_t pid_ = -1;
};

std::string get_metrics(std::uint16_t port) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}, {}};
  EXPECT_EQ(connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const std::string request = "GET /metrics HTTP/1.0\r\nHost: test\r\n\r\n";
  EXPECT_EQ(send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  return read_until(socket.get(), "");
}

class ExporterProcessTest : public TemporaryFolder {
 protected:
  std::string socket() const { return path_ + "/agent.sock"; }
  std::vector<std::string> words() const {
    return {"--listen", "127.0.0.1:0", "--agent", socket()};
  }
};

TEST_F(ExporterProcessTest, TellsWhatTheAgentSays) {
  const StandInAgent agent(socket(), [](const std::string& line) -> std::string {
    if (line == "ctl status\n") return R"(ok {"node":"node1","jobs":[{"state":"running"}]})";
    if (line == "ctl counters\n") return R"(ok {"jobs_started":7})";
    if (line == "ctl gpus\n") return R"(ok {"gpus":[{"index":3,"power":99.5}],"problem":""})";
    return "error what is " + line;
  });
  Exporter exporter(words());
  const std::string page = get_metrics(exporter.port());
  EXPECT_THAT(page, HasSubstr("200 OK"));
  EXPECT_THAT(page, HasSubstr("\nhvdrun_agent_up 1\n"));
  EXPECT_THAT(page, HasSubstr("\nhvdrun_jobs{state=\"running\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("\nhvdrun_jobs_started_total 7\n"));
  EXPECT_THAT(page, HasSubstr("\nhvdrun_gpu_power_watts{gpu=\"3\",uuid=\"\"} 99.5\n"));
  EXPECT_EQ(exporter.end(SIGTERM), 0);
}

TEST_F(ExporterProcessTest, OutlivesTheAgent) {
  Exporter exporter(words());
  const auto port = exporter.port();
  EXPECT_THAT(get_metrics(port), HasSubstr("\nhvdrun_agent_up 0\n"));
  EXPECT_THAT(read_until(exporter.stderr_fd(), "\n"),
              HasSubstr("the agent does not answer: ctl status at " + socket() +
                        ": No such file or directory"));
  {
    const StandInAgent agent(socket(), [](const std::string&) { return "ok {}"; });
    EXPECT_THAT(get_metrics(port), HasSubstr("\nhvdrun_agent_up 1\n"));
    EXPECT_THAT(read_until(exporter.stderr_fd(), "\n"), HasSubstr("answers again"));
  }
  EXPECT_THAT(get_metrics(port), HasSubstr("\nhvdrun_agent_up 0\n"));
  EXPECT_THAT(read_until(exporter.stderr_fd(), "\n"), HasSubstr("Connection refused"));
}

TEST_F(ExporterProcessTest, AnAgentThatHangsIsDownAfterFiveSeconds) {
  const StandInAgent agent(socket(), [](const std::string&) { return ""; });
  Exporter exporter(words());
  const auto port = exporter.port();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(get_metrics(port), HasSubstr("\nhvdrun_agent_up 0\n"));
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, std::chrono::milliseconds(4900));
  EXPECT_LT(took, std::chrono::seconds(8));
}

// nvidia-smi that hangs takes the GPUs away, not the rest.
TEST_F(ExporterProcessTest, AnAnswerThatIsMissingLeavesTheOthers) {
  const StandInAgent agent(socket(), [](const std::string& line) -> std::string {
    return line == "ctl gpus\n" ? "error not now" : R"(ok {"descriptors":9,"draining":"disk"})";
  });
  Exporter exporter(words());
  const std::string page = get_metrics(exporter.port());
  EXPECT_THAT(page, HasSubstr("\nhvdrun_agent_up 1\n"));
  EXPECT_THAT(page, HasSubstr("\nhvdrun_agent_drained 1\n"));
  EXPECT_THAT(page, HasSubstr("\nhvdrun_agent_open_descriptors 9\n"));
  EXPECT_THAT(page, Not(HasSubstr("hvdrun_gpu")));
}

TEST_F(ExporterProcessTest, AnAnswerWithoutEndIsNone) {
  const StandInAgent agent(socket(), [](const std::string&) {
    return "ok {\"node\":\"" + std::string(1 << 20, 'x') + "\"}";
  });
  Exporter exporter(words());
  EXPECT_THAT(get_metrics(exporter.port()), HasSubstr("\nhvdrun_agent_up 0\n"));
  EXPECT_THAT(read_until(exporter.stderr_fd(), "\n"), HasSubstr("more than 1048576 bytes"));
}

TEST_F(ExporterProcessTest, SaysWhyItCannotStart) {
  const UniqueFd taken(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {}};
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(taken.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(taken.get(), 1), 0);
  ASSERT_EQ(getsockname(taken.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string place = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  Exporter second({"--listen", place});
  EXPECT_EQ(read_until(second.stderr_fd(), ""),
            "hvd-exporter: error: cannot listen at " + place + ": Address already in use\n");
  EXPECT_EQ(second.end(), 1);
  Exporter wrong({"--port=1"});
  EXPECT_EQ(read_until(wrong.stderr_fd(), ""),
            "hvd-exporter: error: --port=1 is no option; see hvd-exporter --help\n");
  EXPECT_EQ(wrong.end(), 2);
}

}  // namespace
}  // namespace hvd
