#include "base/service_manager.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

// The manager's end: a datagram socket at `name`, '@' for an abstract one.
class FakeManager {
 public:
  explicit FakeManager(const std::string& name)
      : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    name.copy(at.sun_path, sizeof at.sun_path);
    if (name[0] == '@') at.sun_path[0] = '\0';
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<const sockaddr*>(&at),
                   offsetof(sockaddr_un, sun_path) + name.size()),
              0);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }

  // The next datagram; "nothing" if there is none.
  std::string heard() {
    std::array<char, 4096> buffer{};
    const ssize_t n = recv(fd_.get(), buffer.data(), buffer.size(), 0);
    return n < 0 ? "nothing" : std::string(buffer.data(), n);
  }

 private:
  UniqueFd fd_;
};

std::string abstract_name(std::string_view of) { return fmt::format("@hvd-{}-{}", of, getpid()); }

class ServiceManagerTest : public testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : kServiceManagerVariables) unsetenv(name);
  }
};

TEST_F(ServiceManagerTest, IsToldByOneDatagramAtAnAbstractAddress) {
  FakeManager systemd(abstract_name("tell"));
  const auto manager = ServiceManager::take();
  ASSERT_TRUE(manager);
  EXPECT_TRUE(manager->is_there());
  EXPECT_TRUE(manager->tell("READY=1\nSTATUS=2 jobs"));
  EXPECT_EQ(systemd.heard(), "READY=1\nSTATUS=2 jobs");
  EXPECT_TRUE(manager->extend_timeout(Nanos(1'500'000'001)));
  EXPECT_EQ(systemd.heard(), "EXTEND_TIMEOUT_USEC=1500001");
  EXPECT_EQ(systemd.heard(), "nothing");
}

TEST_F(ServiceManagerTest, IsToldAtAPathAndWaitsForNobody) {
  std::string folder = "/tmp/hvd-notify-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/notify";
  {
    FakeManager systemd(path);
    const auto manager = ServiceManager::take();
    ASSERT_TRUE(manager);
    int num_told = 0;
    constexpr int kMoreThanAQueueHolds = 100'000;
    while (num_told < kMoreThanAQueueHolds && manager->tell("WATCHDOG=1")) ++num_told;
    EXPECT_GT(num_told, 0);
    EXPECT_LT(num_told, kMoreThanAQueueHolds) << "a full queue is told, not waited for";
    EXPECT_EQ(systemd.heard(), "WATCHDOG=1");
    EXPECT_TRUE(manager->tell("WATCHDOG=1"));
    unlink(path.c_str());
    EXPECT_FALSE(manager->tell("WATCHDOG=1")) << "it is being replaced";
  }
  rmdir(folder.c_str());
}

TEST_F(ServiceManagerTest, WithoutOneNothingHasAnEffect) {
  auto manager = ServiceManager::take();
  ASSERT_TRUE(manager);
  EXPECT_FALSE(manager->is_there());
  EXPECT_TRUE(manager->tell("READY=1"));
  EXPECT_EQ(manager->watchdog_interval(), std::nullopt);
  EXPECT_TRUE(manager->take_sockets().empty());
  EXPECT_EQ(manager->invocation(), "");
}

TEST_F(ServiceManagerTest, AnAddressOfAnotherKindIsAnErrorAndLeftNowhere) {
  for (const std::string& address : {std::string("vsock:2:1234"), std::string("run/notify"),
                                     std::string("@"), "/" + std::string(200, 'x')}) {
    setenv("NOTIFY_SOCKET", address.c_str(), 1);
    const auto manager = ServiceManager::take();
    ASSERT_FALSE(manager) << address;
    EXPECT_THAT(manager.error().message, HasSubstr("NOTIFY_SOCKET=" + address));
    EXPECT_EQ(getenv("NOTIFY_SOCKET"), nullptr);
  }
}

TEST_F(ServiceManagerTest, TheWatchdogIsPingedThreeTimesInItsTime) {
  setenv("WATCHDOG_USEC", "21000000", 1);
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  EXPECT_EQ(ServiceManager::take()->watchdog_interval(), seconds(7));
  EXPECT_EQ(getenv("WATCHDOG_USEC"), nullptr);
  EXPECT_EQ(getenv("WATCHDOG_PID"), nullptr);
  setenv("WATCHDOG_USEC", "300000", 1);
  EXPECT_EQ(ServiceManager::take()->watchdog_interval(), milliseconds(100)) << "of all processes";
  setenv("WATCHDOG_USEC", "300000", 1);
  setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(ServiceManager::take()->watchdog_interval(), std::nullopt) << "of another process";
  for (const char* wrong : {"0", "-5", "soon", "2", "18446744073709551615"}) {
    setenv("WATCHDOG_USEC", wrong, 1);
    const auto manager = ServiceManager::take();
    ASSERT_FALSE(manager) << wrong;
    EXPECT_THAT(manager.error().message, HasSubstr(std::string("WATCHDOG_USEC=") + wrong));
  }
}

// Descriptors from 3 on are a child's own to arrange: 0 if `check` holds there.
int in_child_with_sockets(int count, const char* names, bool (*check)(Result<ServiceManager>&)) {
  const pid_t pid = fork();
  if (pid == 0) {
    const int null = open("/dev/null", O_RDONLY);
    for (int i = 0; i < 2; ++i) dup2(null, 3 + i);
    for (int fd = 5; fd < 64; ++fd) close(fd);
    setenv("LISTEN_FDS", std::to_string(count).c_str(), 1);
    setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
    if (names != nullptr) setenv("LISTEN_FDNAMES", names, 1);
    auto manager = ServiceManager::take();
    _exit(check(manager) && getenv("LISTEN_FDS") == nullptr ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

TEST_F(ServiceManagerTest, SocketsComeOnceWithTheirNamesAndCloseOnExec) {
  EXPECT_EQ(in_child_with_sockets(2, "tls:agent",
                                  [](Result<ServiceManager>& manager) {
                                    const auto sockets = manager->take_sockets();
                                    return sockets.size() == 2 && sockets[0].fd.get() == 3 &&
                                           sockets[0].name == "tls" && sockets[1].fd.get() == 4 &&
                                           sockets[1].name == "agent" &&
                                           fcntl(4, F_GETFD) == FD_CLOEXEC &&
                                           manager->take_sockets().empty();
                                  }),
            0);
  EXPECT_EQ(in_child_with_sockets(2, "tls",
                                  [](Result<ServiceManager>& manager) {
                                    const auto sockets = manager->take_sockets();
                                    return sockets.size() == 2 && sockets[0].name == "tls" &&
                                           sockets[1].name == "unknown";
                                  }),
            0);
  EXPECT_EQ(in_child_with_sockets(3, nullptr,
                                  [](Result<ServiceManager>& manager) {
                                    return !manager &&
                                           manager.error().message.find(
                                               "descriptor 5 is not open") != std::string::npos;
                                  }),
            0);
}

TEST_F(ServiceManagerTest, SocketsOfAnotherProcessAreLeftAlone) {
  setenv("LISTEN_FDS", "1", 1);
  setenv("LISTEN_PID", "1", 1);
  auto manager = ServiceManager::take();
  ASSERT_TRUE(manager);
  EXPECT_TRUE(manager->take_sockets().empty());
  EXPECT_EQ(getenv("LISTEN_FDS"), nullptr);
}

TEST_F(ServiceManagerTest, TheInvocationStaysReadable) {
  setenv("INVOCATION_ID", "0123456789abcdef0123456789abcdef", 1);
  EXPECT_EQ(ServiceManager::take()->invocation(), "0123456789abcdef0123456789abcdef");
  EXPECT_NE(getenv("INVOCATION_ID"), nullptr);
}

TEST(ServiceManagerVariables, AreTheManagersNotTheUsers) {
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_PID", "LISTEN_FDNAMES", "JOURNAL_STREAM"}) {
    EXPECT_TRUE(is_service_manager_variable(name)) << name;
  }
  for (const char* name : {"PATH", "HOME", "XDG_RUNTIME_DIR", "CUDA_VISIBLE_DEVICES", ""}) {
    EXPECT_FALSE(is_service_manager_variable(name)) << name;
  }
}

}  // namespace
}  // namespace hvd
