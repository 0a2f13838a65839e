// The ssh transport against a real sshd on a loopback port, with keys and files of its own. Needs
// root, because sshd without it can only serve its own user and has no privilege separation folder.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>

#include "base/clock.h"
#include "launcher/transport/test_support.h"

extern char** environ;

namespace hvd {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kSum = "fedcba9876543210";

void run_program(const std::string& command) {
  ASSERT_EQ(std::system((command + " >/dev/null 2>&1").c_str()), 0) << command;
}

// A program of the test, ended and reaped with it.
class Program {
 public:
  explicit Program(const std::vector<std::string>& words) {
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    EXPECT_EQ(::posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    ::kill(pid_, SIGCONT);
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

UniqueFd listen_on_loopback(std::uint16_t* port, bool is_listening) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  *port = ntohs(address.sin_port);
  if (is_listening) ::listen(fd.get(), 8);
  return fd;
}

UniqueFd connect_to(std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) fd.reset();
  return fd;
}

class SshTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "sshd with its own configuration needs root";
    ::mkdir("/run/sshd", 0755);
    ::unsetenv("SSH_AUTH_SOCK");
    run_program("ssh-keygen -q -t ed25519 -N '' -f " + scratch_.at("host_key"));
    run_program("ssh-keygen -q -t ed25519 -N '' -f " + scratch_.at("user_key"));
    std::filesystem::copy(scratch_.at("user_key.pub"), scratch_.at("authorized_keys"));
    write_file(scratch_.at("known_hosts"), "");
    { const UniqueFd probe = listen_on_loopback(&port_, false); }
    write_ssh_config("IdentityFile " + scratch_.at("user_key"));
    trust_host_key("host_key");
    agent_ = write_fake_agent(scratch_.at("agent"), kSum);
  }

  void trust_host_key(const std::string& name) {
    const std::string key = read_file(scratch_.at(name + ".pub"));
    write_file(scratch_.at("known_hosts"), "[127.0.0.1]:" + std::to_string(port_) + " " + key);
  }

  void write_ssh_config(const std::string& lines) {
    write_file(scratch_.at("config"), "UserKnownHostsFile " + scratch_.at("known_hosts") +
                                          "\nGlobalKnownHostsFile /dev/null\n" + lines + "\n");
  }

  void start_sshd(const std::string& lines = "") {
    const std::string port = std::to_string(port_);
    write_file(scratch_.at("sshd_config"),
               lines + "\nPort " + port + "\nListenAddress 127.0.0.1\nHostKey " +
                   scratch_.at("host_key") + "\nAuthorizedKeysFile " +
                   scratch_.at("authorized_keys") +
                   "\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nPidFile none\nUseDNS no\n"
                   "PrintMotd no\nSetEnv HOME=" +
                   scratch_.path() + " XDG_RUNTIME_DIR=" + scratch_.at("run") + "\n");
    sshd_.emplace(
        std::vector<std::string>{"/usr/sbin/sshd", "-D", "-f", scratch_.at("sshd_config")});
    // The test's own wait for a program to listen: there is no event for it.
    for (int i = 0; i < 200 && !connect_to(port_).is_valid(); ++i) ::usleep(20000);
  }

  void make_transport(bool accept_new = false) {
    SshTransportConfig config;
    config.config_file = scratch_.at("config");
    config.accept_new_host_keys = accept_new;
    config.lease = std::chrono::seconds(15);
    config.agent = agent_;
    transport_ = make_ssh_transport(loop_, std::move(config));
  }

  OpenRequest request(int limit_ms) {
    OpenRequest result;
    result.target.host = "127.0.0.1";
    result.target.user = "root";
    result.target.port = port_;
    result.deadline = in_ms(limit_ms);
    result.on_phase = [this](Phase phase) { phases_.emplace_back(phase_name(phase)); };
    return result;
  }

  Result<std::unique_ptr<Connection>> open(int limit_ms = 10000) {
    if (!transport_) make_transport();
    return run_task(loop_, transport_->open(request(limit_ms)));
  }

  std::string open_error(int limit_ms = 10000) {
    const auto opened = open(limit_ms);
    EXPECT_FALSE(opened);
    return opened ? "" : opened.error().message;
  }

  const ScratchFolder scratch_;
  std::uint16_t port_ = 0;
  std::optional<Program> sshd_;
  AgentImage agent_;
  Loop loop_;
  std::unique_ptr<Transport> transport_;
  std::vector<std::string> phases_;
};

std::string echo_through(int stream, const std::string& text) {
  (void)!::send(stream, text.data(), text.size(), 0);
  return read_stream(stream, text.size());
}

TEST_F(SshTest, LogsInByKeyFileAndPlacesTheAgentOnOneChannel) {
  start_sshd("MaxSessions 1");
  auto opened = open();
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_THAT(phases_, ElementsAre("resolve", "connect", "authenticate", "start agent",
                                   "place agent", "start agent"));
  EXPECT_EQ((*opened)->agent_path(), scratch_.at(".cache/hvdrun"));
  const UniqueFd stream = (*opened)->take_stream();
  EXPECT_EQ(echo_through(stream.get(), "hello"), "hello");
  phases_.clear();
  auto again = open();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_THAT(phases_, ElementsAre("resolve", "connect", "authenticate", "start agent"));
}

TEST_F(SshTest, PassesTheEndOfTheStreamOnAndEndsWithTheAgent) {
  agent_ = write_fake_agent(scratch_.at("agent"), kSum, "cat >/dev/null; echo saw the end; exit 3");
  start_sshd();
  auto opened = open();
  ASSERT_TRUE(opened) << opened.error().message;
  const UniqueFd stream = (*opened)->take_stream();
  ::shutdown(stream.get(), SHUT_WR);
  EXPECT_EQ(read_stream(stream.get(), 100), "saw the end\n");
}

TEST_F(SshTest, RefusesAnUnknownHostKeyWithFingerprintAndRemedy) {
  start_sshd();
  write_file(scratch_.at("known_hosts"), "");
  EXPECT_THAT(open_error(), AllOf(HasSubstr("127.0.0.1: its host key SHA256:"),
                                  HasSubstr("ssh-keyscan -p " + std::to_string(port_))));
}

TEST_F(SshTest, AppendsANewHostKeyOnceWhenAllowed) {
  start_sshd();
  write_file(scratch_.at("known_hosts"), "# mine, without a line end");
  make_transport(true);
  int num_ready = 0;
  for (int i = 0; i < 4; ++i) {
    boost::asio::co_spawn(
        loop_, transport_->open(request(10000)),
        [&](const std::exception_ptr&, Result<std::unique_ptr<Connection>> opened) {
          EXPECT_TRUE(opened) << opened.error().message;
          num_ready += opened.has_value();
        });
  }
  loop_.run();
  EXPECT_EQ(num_ready, 4);
  const std::string text = read_file(scratch_.at("known_hosts"));
  EXPECT_TRUE(text.starts_with("# mine, without a line end\n[127.0.0.1]:")) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

TEST_F(SshTest, RefusesAChangedHostKeyAlways) {
  start_sshd();
  trust_host_key("user_key");
  const std::string before = read_file(scratch_.at("known_hosts"));
  make_transport(true);
  EXPECT_THAT(open_error(), AllOf(HasSubstr("CHANGED"), HasSubstr("ssh-keygen")));
  EXPECT_EQ(read_file(scratch_.at("known_hosts")), before);
}

TEST_F(SshTest, RefusesARevokedHostKeyThoughItIsListed) {
  start_sshd();
  const std::string line = read_file(scratch_.at("known_hosts"));
  write_file(scratch_.at("known_hosts"), line + "@revoked " + line);
  EXPECT_THAT(open_error(), HasSubstr("is revoked in"));
}

TEST_F(SshTest, NamesMethodsAndRemedyWhereOnlyAPasswordIsTaken) {
  start_sshd(
      "PubkeyAuthentication no\nPasswordAuthentication yes\nKbdInteractiveAuthentication no");
  EXPECT_THAT(open_error(), AllOf(HasSubstr("sshd offers password"), HasSubstr("ssh-copy-id -p")));
}

TEST_F(SshTest, NamesTheKeyThatIsNotAccepted) {
  start_sshd("PasswordAuthentication yes");
  write_file(scratch_.at("authorized_keys"), "");
  EXPECT_THAT(open_error(), AllOf(HasSubstr("accepted no key (tried " + scratch_.at("user_key")),
                                  HasSubstr("ssh-copy-id")));
}

TEST_F(SshTest, NamesTheEncryptedKeyThatNoAgentHolds) {
  start_sshd();
  run_program("ssh-keygen -q -p -P '' -N secret -f " + scratch_.at("user_key"));
  EXPECT_THAT(open_error(),
              HasSubstr("is encrypted and no agent holds it: ssh-add " + scratch_.at("user_key")));
}

TEST_F(SshTest, UsesAKeyThatOnlyTheAgentHolds) {
  start_sshd();
  const Program agent({"ssh-agent", "-D", "-a", scratch_.at("agent_socket")});
  while (!std::filesystem::exists(scratch_.at("agent_socket"))) ::usleep(10000);
  run_program("SSH_AUTH_SOCK=" + scratch_.at("agent_socket") + " ssh-add " +
              scratch_.at("user_key"));
  std::filesystem::remove(scratch_.at("user_key"));
  write_ssh_config("IdentityAgent " + scratch_.at("agent_socket"));
  auto opened = open();
  EXPECT_TRUE(opened) << opened.error().message;
}

TEST_F(SshTest, GoesOnWithFilesWhenTheAgentIsStopped) {
  start_sshd();
  const Program agent({"ssh-agent", "-D", "-a", scratch_.at("agent_socket")});
  while (!std::filesystem::exists(scratch_.at("agent_socket"))) ::usleep(10000);
  ::kill(agent.pid(), SIGSTOP);
  write_ssh_config("IdentityAgent " + scratch_.at("agent_socket") + "\nIdentityFile " +
                   scratch_.at("user_key"));
  auto opened = open();
  EXPECT_TRUE(opened) << opened.error().message;
}

TEST_F(SshTest, SaysAtOnceThatAPortRefuses) {
  const SteadyTime start = std::chrono::steady_clock::now();
  const auto opened = open();
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("refuses connections: is sshd running there?"));
  EXPECT_EQ(opened.error().code, ExitCode::kInfrastructure);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

TEST_F(SshTest, EndsAtTheDeadlineInATarpit) {
  const UniqueFd tarpit = listen_on_loopback(&port_, true);
  const SteadyTime start = std::chrono::steady_clock::now();
  const auto opened = open(1000);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ExitCode::kTimeout);
  EXPECT_THAT(opened.error().message, HasSubstr("(connect)"));
  transport_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(1400));
}

TEST_F(SshTest, EndsAtTheDeadlineWhenTheAgentNeverStarts) {
  start_sshd("ForceCommand echo one moment >&2; exec sleep 30");
  const auto opened = open(1000);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ExitCode::kTimeout);
  EXPECT_THAT(opened.error().message, AllOf(HasSubstr("(start agent)"), HasSubstr("one moment")));
}

TEST_F(SshTest, AbortEndsEverythingUnderWay) {
  const UniqueFd tarpit = listen_on_loopback(&port_, true);
  make_transport();
  std::string message;
  boost::asio::co_spawn(loop_, transport_->open(request(60000)),
                        [&](const std::exception_ptr&, Result<std::unique_ptr<Connection>> opened) {
                          message = opened ? "" : opened.error().message;
                        });
  boost::asio::steady_timer timer(loop_, std::chrono::milliseconds(200));
  timer.async_wait([&](const boost::system::error_code&) { transport_->abort(); });
  const SteadyTime start = std::chrono::steady_clock::now();
  loop_.run();
  transport_.reset();
  EXPECT_THAT(message, HasSubstr("stopped"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(600));
}

TEST_F(SshTest, PassesOverAChattyLogin) {
  start_sshd("ForceCommand echo Welcome to node1; eval \"$SSH_ORIGINAL_COMMAND\"");
  auto opened = open();
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_THAT((*opened)->diagnostics(), HasSubstr("Welcome to node1"));
}

TEST_F(SshTest, TellsWhatARefusingLoginSaid) {
  start_sshd("ForceCommand echo This account is closed; echo really >&2; exit 17");
  EXPECT_THAT(open_error(), AllOf(HasSubstr("exit 17"), HasSubstr("really")));
}

TEST_F(SshTest, TriesAgainWhenSshdDropsTheConnection) {
  start_sshd("MaxStartups 1");
  // The one that counts is greeted ("SSH-..."); sshd may still count the look whether it listens.
  std::optional<UniqueFd> idle;
  for (char greeting = 0; greeting != 'S';) {
    idle = connect_to(port_);
    ASSERT_TRUE(idle->is_valid());
    if (::read(idle->get(), &greeting, 1) != 1) ::usleep(10000);
  }
  boost::asio::steady_timer timer(loop_, std::chrono::milliseconds(300));
  timer.async_wait([&](const boost::system::error_code&) { idle.reset(); });
  auto opened = open();
  EXPECT_TRUE(opened) << opened.error().message;
  EXPECT_GT(std::count(phases_.begin(), phases_.end(), "connect"), 1);
}

TEST_F(SshTest, GoesThroughAProxyCommandAndQuotesItsErrors) {
  start_sshd();
  write_ssh_config("IdentityFile " + scratch_.at("user_key") +
                   "\nProxyCommand bash -c 'exec 3<>/dev/tcp/%h/%p; cat <&3 & cat >&3'");
  {
    const auto opened = open();
    EXPECT_TRUE(opened) << opened.error().message;
  }
  transport_.reset();
  write_ssh_config("ProxyCommand echo bastion is down >&2; exit 1");
  EXPECT_THAT(open_error(), HasSubstr("bastion is down"));
}

TEST_F(SshTest, AnswersKeepAlivesOfAnIdleSession) {
  start_sshd("ClientAliveInterval 1\nClientAliveCountMax 1");
  auto opened = open();
  ASSERT_TRUE(opened) << opened.error().message;
  const UniqueFd stream = (*opened)->take_stream();
  ::sleep(4);  // sshd hangs up after two unanswered seconds
  EXPECT_EQ(echo_through(stream.get(), "still here"), "still here");
}

TEST_F(SshTest, DestroyingAConnectionNeverWaits) {
  agent_ = write_fake_agent(scratch_.at("agent"), kSum, "trap '' HUP TERM; exec sleep 5");
  start_sshd();
  auto opened = open();
  ASSERT_TRUE(opened) << opened.error().message;
  const SteadyTime start = std::chrono::steady_clock::now();
  opened->reset();
  transport_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(200));
}

TEST_F(SshTest, CarriesTheCommandTransportThroughTheSshProgram) {
  start_sshd();
  transport_ = make_command_transport(
      loop_, {{"ssh", "-F", scratch_.at("config"), "-oBatchMode=yes", "-p{port}", "--", "{host}"},
              agent_});
  auto opened = open();
  ASSERT_TRUE(opened) << opened.error().message;
  const UniqueFd stream = (*opened)->take_stream();
  EXPECT_EQ(echo_through(stream.get(), "hello"), "hello");
  write_file(scratch_.at("known_hosts"), "");
  EXPECT_THAT(open_error(), AllOf(HasSubstr("exit 255 of ssh"), HasSubstr("verification failed")));
}

TEST_F(SshTest, TakesTheNextFolderWhenTheHomeIsMountedNoexec) {
  ::setenv("HOME", scratch_.at("home").c_str(), 1);
  ::setenv("XDG_RUNTIME_DIR", scratch_.at("run").c_str(), 1);
  std::filesystem::create_directories(scratch_.at("home"));
  transport_ = make_command_transport(
      loop_,
      {{"unshare", "-m", "sh", "-c", "mount -t tmpfs -o noexec none $HOME && exec sh"}, agent_});
  auto opened = open();
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->agent_path(), scratch_.at("run/hvdrun"));
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST_F(SshTest, CarriesFiftyMegabytesEachWay) {
  constexpr std::size_t kSize = 51'000'000;
  agent_ = write_fake_agent(scratch_.at("agent"), kSum,
                            "head -c 51000000 /dev/zero; head -c 51000000 | sha256sum");
  start_sshd();
  auto opened = open();
  ASSERT_TRUE(opened) << opened.error().message;
  const UniqueFd stream = (*opened)->take_stream();
  const SteadyTime start = std::chrono::steady_clock::now();
  const double cpu = cpu_seconds();
  EXPECT_EQ(read_stream(stream.get(), kSize).size(), kSize);
  const SteadyTime middle = std::chrono::steady_clock::now();
  const double middle_cpu = cpu_seconds();
  const std::string piece(100'000, '\0');
  for (std::size_t sent = 0; sent < kSize;) {
    pollfd entry{stream.get(), POLLOUT, 0};
    ASSERT_EQ(::poll(&entry, 1, 5000), 1);
    const ssize_t size =
        ::send(stream.get(), piece.data(), std::min(piece.size(), kSize - sent), MSG_NOSIGNAL);
    if (size > 0) sent += static_cast<std::size_t>(size);
  }
  EXPECT_EQ(read_stream(stream.get(), 64),
            "0221e17c28b729fcb262de6c08f3e9c3e25b5a25e5eae6516c005a5751c87962");
  const SteadyTime end = std::chrono::steady_clock::now();
  const auto text = [](SteadyTime::duration time) {
    return format_duration(std::chrono::duration_cast<Nanos>(time));
  };
  RecordProperty("down_wall", text(middle - start));
  RecordProperty("up_wall", text(end - middle));
  std::printf("51 MB down: %s, %.2f s CPU; up: %s, %.2f s CPU\n", text(middle - start).c_str(),
              middle_cpu - cpu, text(end - middle).c_str(), cpu_seconds() - middle_cpu);
}

}  // namespace
}  // namespace hvd
