// The built hvd-agent as a service: several launchers at once at its socket, with real workers.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <cstring>
#include <list>

#include "base/read_file.h"
#include "base/unix_address.h"
#include "tests/support/agent_process.h"

namespace hvd {
namespace {

using namespace std::chrono_literals;
using test::AgentCalls;
using test::is_gone;
using test::is_gone_within;
using ::testing::HasSubstr;

std::size_t num_entries(const std::string& folder) {
  const std::filesystem::directory_iterator entries(folder);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

class AgentServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    pid_ = start();
    ASSERT_TRUE(connect().is_valid());
  }

  void TearDown() override {
    launchers_.clear();
    if (pid_ > 0) {
      kill(pid_, SIGTERM);
      EXPECT_EQ(wait_for_agent(), 0) << log();
    }
    std::filesystem::remove_all(folder_);
  }

  [[nodiscard]] std::string path() const { return folder_ + "/agent.sock"; }
  [[nodiscard]] std::string log() const { return read_small_file(folder_ + "/log"); }

  [[nodiscard]] pid_t start() const {
    const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
    const UniqueFd log(
        open((folder_ + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    return test::start_agent({"serve", "--listen", "unix:" + path()}, null.get(), null.get(),
                             log.get());
  }

  // Retried while the agent is not there yet.
  [[nodiscard]] UniqueFd connect() const {
    const sockaddr_un address = unix_address(path());
    for (int i = 0; i < 1000; ++i) {
      UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
          0) {
        return socket;
      }
      std::this_thread::sleep_for(5ms);
    }
    return UniqueFd();
  }

  [[nodiscard]] UniqueFd say(const std::string& line) const {
    UniqueFd socket = connect();
    const std::string text = line + "\n";
    EXPECT_EQ(write(socket.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    return socket;
  }

  // All that comes until the other side closes.
  static std::string read_all(const UniqueFd& socket) {
    std::string text;
    char byte = 0;
    while (read(socket.get(), &byte, 1) == 1) text += byte;
    return text;
  }

  // A launcher with a job of its own.
  AgentCalls& add_launcher() {
    AgentCalls& launcher = launchers_.emplace_back();
    launcher.job_id_ = fmt::format("{:08x}feedbeef01234567{:08x}", launchers_.size(), getpid());
    launcher.connect(say(fmt::format("M-{} --stdio --job {} --node 3 --cgroup-root none",
                                     launchers_.size(), launcher.job_id_)));
    EXPECT_THAT(launcher.ready_line_, HasSubstr(fmt::format("M-{} ready ", launchers_.size())));
    return launcher;
  }

  // The pid of its one worker.
  static pid_t run(AgentCalls& launcher, const std::vector<std::string>& argv) {
    launcher.shim_ = launcher.say_hello(argv).shim_pid();
    launcher.give_credit(1u << 20);
    launcher.spawn();
    return launcher.next(v1::ControlReply::kStarted).started().pid();
  }

  static std::string read_chunk(AgentCalls& launcher) {
    v1::OutputReply output;
    EXPECT_TRUE(launcher.output_->Read(&output));
    return output.chunks_size() > 0 ? output.chunks(0).data() : "";
  }

  static void stop_and_expect_clean(AgentCalls& launcher) {
    v1::ControlRequest request;
    request.mutable_stop()->set_grace_ms(2000);
    EXPECT_TRUE(launcher.control_->Write(request));
    EXPECT_EQ(launcher.next(v1::ControlReply::kExited).exited().signalled(), SIGTERM);
    EXPECT_TRUE(launcher.next(v1::ControlReply::kFinished).finished().clean());
    launcher.say_bye_and_expect_ok();
  }

  int wait_for_agent() {
    int status = 0;
    EXPECT_GT(waitpid(std::exchange(pid_, -1), &status, 0), 0);
    return status;
  }

  // The line of a session's end comes a moment after it.
  [[nodiscard]] bool is_logged(const std::string& text) const {
    for (int i = 0; i < 400; ++i) {
      if (log().find(text) != std::string::npos) return true;
      std::this_thread::sleep_for(5ms);
    }
    return false;
  }

  std::string folder_ = "/tmp/hvd-service-XXXXXX";
  pid_t pid_ = -1;
  std::list<AgentCalls> launchers_;
};

TEST_F(AgentServiceTest, ALauncherThatVanishesTakesOnlyItsOwnJob) {
  AgentCalls& first = add_launcher();
  AgentCalls& second = add_launcher();
  const pid_t lost = run(first, {"sleep", "600"});
  const pid_t kept = run(second, {"sleep", "600"});
  first.disconnect();
  EXPECT_TRUE(is_gone_within(lost, 1000ms));
  EXPECT_TRUE(is_logged("job " + first.job_id_ + " node 3: stream end after ")) << log();
  EXPECT_FALSE(is_gone(kept));
  stop_and_expect_clean(second);
  EXPECT_TRUE(is_logged("job " + second.job_id_ + " node 3: bye after ")) << log();
}

TEST_F(AgentServiceTest, AShimThatDiesTakesOnlyItsOwnJob) {
  AgentCalls& first = add_launcher();
  AgentCalls& second = add_launcher();
  // Neither its session nor its environment tells whose it is: it is found as a stray.
  const pid_t lost = run(first, {"sh", "-c", "env -i setsid sleep 601 & echo $!; wait"});
  const pid_t escaped = std::stoi(read_chunk(first));
  const pid_t kept = run(second, {"sh", "-c", "env -i setsid sleep 601 & echo $!; wait"});
  const pid_t kept_too = std::stoi(read_chunk(second));
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(kill(first.shim_, SIGKILL), 0);
  v1::ControlReply reply;
  while (first.control_->Read(&reply)) {
  }
  const grpc::Status status = first.control_->Finish();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s) << "others' children are not waited for";
  EXPECT_THAT(status.error_message(), HasSubstr("died of signal 9"));
  EXPECT_TRUE(is_gone(lost));
  EXPECT_TRUE(is_gone(escaped));
  EXPECT_FALSE(is_gone(second.shim_));
  EXPECT_FALSE(is_gone(kept));
  EXPECT_FALSE(is_gone(kept_too));
  stop_and_expect_clean(second);
  EXPECT_TRUE(is_gone(kept_too));
}

TEST_F(AgentServiceTest, ANoticeReachesTheLauncherThatItConcerns) {
  AgentCalls& first = add_launcher();
  AgentCalls& second = add_launcher();
  run(first, {"sleep", "600"});
  run(second, {"sh", "-c", "exit 3"});
  // A notice for the one that it concerns, and for nobody else.
  ASSERT_TRUE(first.control_->Write(v1::ControlRequest()));
  EXPECT_THAT(first.next(v1::ControlReply::kNotice).notice().text(), HasSubstr("does not know"));
  const v1::ControlReply exited = second.next();
  EXPECT_EQ(exited.exited().exited(), 3) << exited.ShortDebugString();
  stop_and_expect_clean(first);
}

TEST_F(AgentServiceTest, SigtermEndsAllJobsAndTheSocket) {
  const pid_t obedient = run(add_launcher(), {"sleep", "600"});
  const pid_t deaf =
      run(add_launcher(), {"sh", "-c", "trap '' TERM; echo up; sleep 600 & wait; wait"});
  const auto begin = std::chrono::steady_clock::now();
  kill(pid_, SIGTERM);
  EXPECT_TRUE(is_gone_within(obedient, 1000ms));
  EXPECT_TRUE(is_gone_within(deaf, 2500ms));
  EXPECT_EQ(wait_for_agent(), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 4s);
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_THAT(log(), HasSubstr("got signal 15; ending 2 sessions"));
}

TEST_F(AgentServiceTest, ADeadSocketIsReplacedALivingOneIsNot) {
  const pid_t second = start();
  int status = 0;
  ASSERT_EQ(waitpid(second, &status, 0), second);
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_THAT(log(), HasSubstr("is served by a process that lives"));
  kill(pid_, SIGKILL);
  wait_for_agent();
  ASSERT_TRUE(std::filesystem::exists(path()));
  pid_ = start();
  EXPECT_THAT(read_all(say("nonsense")), HasSubstr("nonsense error this agent is of version "));
}

TEST_F(AgentServiceTest, NonsenseIsRefusedWithOneLine) {
  EXPECT_THAT(read_all(say("PRI * HTTP/2.0")), HasSubstr("PRI error this agent is of version "));
  EXPECT_THAT(read_all(say("M-1 --stdio\nand more")), HasSubstr("M-1 error this agent is of"));
  EXPECT_THAT(read_all(say(std::string(5000, 'x'))), HasSubstr("error what came is no line"));
  { const UniqueFd silent = connect(); }
  EXPECT_TRUE(is_logged("no word came")) << log();
}

TEST_F(AgentServiceTest, AReapSaysThatTheJobIsGone) {
  AgentCalls& first = add_launcher();
  AgentCalls& second = add_launcher();
  const pid_t deaf = run(first, {"sh", "-c", "trap '' TERM; echo up; sleep 600 & wait; wait"});
  const pid_t kept = run(second, {"sleep", "600"});
  first.disconnect();
  const std::string answer =
      read_all(say("M-9 reap --job " + first.job_id_ + " --node 3 --grace-ms 2000"));
  EXPECT_THAT(answer, HasSubstr("M-9 ready "));
  EXPECT_THAT(answer, HasSubstr("\"clean\":true"));
  EXPECT_TRUE(is_gone(deaf));
  EXPECT_FALSE(is_gone(kept));
  EXPECT_TRUE(is_logged("job " + first.job_id_ + " node 3: reaped after ")) << log();
}

TEST_F(AgentServiceTest, SessionsLeaveNothingOpen) {
  const std::string fds = fmt::format("/proc/{}/fd", pid_);
  std::size_t before = 0;
  for (int i = 0; i < 12; ++i) {
    AgentCalls& launcher = add_launcher();
    run(launcher, {"true"});
    EXPECT_TRUE(launcher.next(v1::ControlReply::kFinished).finished().clean());
    launcher.say_bye_and_expect_ok();
    launcher.disconnect();
    EXPECT_TRUE(is_logged("job " + launcher.job_id_ + " node 3: bye after "));
    if (i == 1) before = num_entries(fds);
  }
  // gRPC opens a few when it first needs them; a session that leaves one would show ten times.
  EXPECT_LT(num_entries(fds), before + 6);
}

// Says by its exit status whether it was turned away with a reason.
int connect_as_nobody(const std::string& path) {
  constexpr uid_t kNobody = 65534;
  const pid_t child = fork();
  if (child == 0) {
    const sockaddr_un address = unix_address(path);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    char text[64] = {};
    if (syscall(SYS_setresuid, kNobody, kNobody, kNobody) != 0 ||
        connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      _exit(2);
    }
    const ssize_t size = read(fd, text, sizeof text - 1);
    _exit(size > 0 && strstr(text, "hvd-agent serves user 0 and root only") != nullptr ? 0 : 3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST_F(AgentServiceTest, AnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "becoming another user needs root";
  // Somebody has opened the folder and the socket: the kernel's word for the peer still holds.
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  ASSERT_EQ(chmod(path().c_str(), 0666), 0);
  EXPECT_EQ(connect_as_nobody(path()), 0);
  EXPECT_TRUE(is_logged("(uid 65534): only user 0 and root are served")) << log();
}

}  // namespace
}  // namespace hvd
