#include "runtime/tcp_connect.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <atomic>

#include "base/unique_fd.h"
#include "tests/support/rank_team.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::on_threads;
using test::settings_of;
using testing::HasSubstr;

const Call kCall{seconds(20), nullptr};

// As rank `rank` published it.
std::uint16_t port_of(TcpRendezvous& rendezvous, int rank) {
  const auto value = rendezvous.get(fmt::format("tcp_communicator/{}", rank), seconds(20));
  return static_cast<std::uint16_t>(std::stoi(value->substr(value->find(' ') + 1)));
}

UniqueFd dial(std::uint16_t port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return socket;
}

TEST(TcpConnect, StrangersAreDroppedAndDisturbNobody) {
  InMemoryRendezvous rendezvous;
  std::vector<UniqueFd> strangers;
  on_threads(3, [&](int rank) {
    if (rank == 2) {
      // Silent ones, one that talks nonsense, one that ends, before the last rank comes.
      const std::uint16_t port = port_of(rendezvous, 0);
      for (int i = 0; i < 300; ++i) strangers.push_back(dial(port));
      const std::string nonsense(5000, 'x');
      EXPECT_GT(send(strangers[0].get(), nonsense.data(), nonsense.size(), MSG_NOSIGNAL), 0);
      strangers[1].reset();
    }
    auto connected = tcp_connect(rendezvous, settings_of(rank, 3), seconds(20));
    ASSERT_TRUE(connected) << connected.error().message;
    EXPECT_TRUE((*connected)->finalize(kCall));
  });
  // Nobody listens any longer.
  char byte = 0;
  EXPECT_LE(recv(strangers[2].get(), &byte, 1, 0), 0);
}

TEST(TcpConnect, AWrongNonceIsRefusedOnBothSides) {
  InMemoryRendezvous rendezvous;
  on_threads(2, [&](int rank) {
    TcpSettings settings = settings_of(rank, 2);
    if (rank == 1) settings.nonce = "the nonce of another job";
    const auto connected = tcp_connect(rendezvous, settings, milliseconds(500));
    ASSERT_FALSE(connected);
    if (rank == 1) {
      EXPECT_THAT(connected.error().message,
                  HasSubstr("rank 0 on node0 cannot prove the job's nonce"));
    } else {
      EXPECT_THAT(connected.error().message,
                  HasSubstr("rank 1 did not connect within 0.5 s; 2 connections that could not "
                            "prove the job's nonce were dropped"));
      EXPECT_EQ(connected.error().code, ExitCode::kTimeout);
    }
  });
}

TEST(TcpConnect, AnotherGenerationIsNoRankOfThisOne) {
  InMemoryRendezvous rendezvous;
  on_threads(2, [&](int rank) {
    TcpSettings settings = settings_of(rank, 2);
    settings.generation = static_cast<std::uint32_t>(rank);
    const auto connected = tcp_connect(rendezvous, settings, milliseconds(300));
    ASSERT_FALSE(connected);
    EXPECT_THAT(connected.error().message, HasSubstr("did not connect within 0.3 s"));
  });
}

TEST(TcpConnect, RanksThatDoNotComeAreNamed) {
  InMemoryRendezvous rendezvous;
  const int fds = test::count_own("fd");
  const auto first = tcp_connect(rendezvous, settings_of(0, 4), milliseconds(100));
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().message,
            "rank 0: connecting the ranks: rank 1, rank 2, rank 3 did not connect within 0.1 s");
  const auto other = tcp_connect(rendezvous, settings_of(3, 4), milliseconds(100));
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("rank 1 did not leave its address"));
  EXPECT_EQ(test::count_own("fd"), fds);
}

TEST(TcpConnect, ARankThatIsGoneIsNamed) {
  InMemoryRendezvous rendezvous;
  // An address where nobody listens any longer.
  EXPECT_FALSE(tcp_connect(rendezvous, settings_of(0, 2), milliseconds(20)));
  const auto begin = std::chrono::steady_clock::now();
  const auto connected = tcp_connect(rendezvous, settings_of(1, 2), seconds(20));
  ASSERT_FALSE(connected);
  EXPECT_THAT(connected.error().message, HasSubstr("rank 0 on node0 cannot be connected to"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(5));
}

TEST(TcpConnect, SettingsAreChecked) {
  InMemoryRendezvous rendezvous;
  EXPECT_FALSE(tcp_connect(rendezvous, settings_of(2, 2), seconds(1)));
  TcpSettings settings = settings_of(0, 2);
  settings.listen_address = "localhost";
  const auto by_name = tcp_connect(rendezvous, settings, seconds(1));
  ASSERT_FALSE(by_name);
  EXPECT_THAT(by_name.error().message, HasSubstr("'localhost' is no numeric address"));
  settings.nonce = "short";
  EXPECT_FALSE(tcp_connect(rendezvous, settings, seconds(1)));
}

TEST(TcpConnect, WorksOverIpv6) {
  InMemoryRendezvous rendezvous;
  const UniqueFd probe(socket(AF_INET6, SOCK_STREAM, 0));
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  if (bind(probe.get(), reinterpret_cast<sockaddr*>(&loopback), sizeof loopback) != 0) {
    GTEST_SKIP() << "this machine has no IPv6 loopback";
  }
  on_threads(2, [&](int rank) {
    TcpSettings settings = settings_of(rank, 2);
    settings.listen_address = "::1";
    auto connected = tcp_connect(rendezvous, settings, seconds(20));
    ASSERT_TRUE(connected) << connected.error().message;
    EXPECT_TRUE((*connected)->finalize(kCall));
  });
}

TEST(FolderRendezvous, CarriesAnyBytesAndEndsAtTheLimit) {
  char name[] = "/tmp/rendezvous.XXXXXX";
  const std::string folder = mkdtemp(name);
  FolderRendezvous rendezvous(folder);
  const std::string value("\0\xff\n x", 5);
  std::thread later([&] { EXPECT_TRUE(rendezvous.put("a/b", value, seconds(1))); });
  EXPECT_EQ(rendezvous.get("a/b", seconds(20)).value_or("none"), value);
  later.join();
  const auto missing = rendezvous.get("c", milliseconds(60));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "rendezvous: key 'c' was not put within 60 ms");
  EXPECT_EQ(missing.error().code, ExitCode::kTimeout);
  EXPECT_EQ(remove((folder + "/a.b").c_str()), 0);
  EXPECT_EQ(remove(folder.c_str()), 0);
}

}  // namespace
}  // namespace hvd
