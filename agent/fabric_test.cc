#include "agent/fabric.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "agent/fabric_probe.h"
#include "agent/master_port.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;
using ::testing::HasSubstr;

constexpr const char* kCheckedJob = "0123456789abcdef0123456789abcdef";

// 0 or the errno of a plain or reusing bind, by a socket of its own.
int try_bind(std::uint16_t port, bool is_reusing, bool is_listening) {
  const UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (is_reusing) setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  if (bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return errno;
  if (is_listening && listen(socket.get(), 1) != 0) return errno;
  return 0;
}

TEST(Fabric, ReservedPortIsOnlyForWhoeverReusesIt) {
  const auto reservation = FabricReservation::make(61000, 65535, 1234);
  ASSERT_TRUE(reservation);
  EXPECT_EQ(try_bind(reservation->port(), false, true), EADDRINUSE);
  {
    const auto listening = reservation->listen();
    ASSERT_TRUE(listening);
    EXPECT_EQ(try_bind(reservation->port(), true, true), EADDRINUSE);
  }
  EXPECT_EQ(try_bind(reservation->port(), false, false), EADDRINUSE);
  EXPECT_EQ(try_bind(reservation->port(), true, true), 0);
}

TEST(Fabric, SecondReservationTakesTheNextPort) {
  const auto first = FabricReservation::make(61000, 65000, 77);
  ASSERT_TRUE(first);
  const auto port = first->port();
  const auto next = FabricReservation::make(port, static_cast<std::uint16_t>(port + 3), 0);
  ASSERT_TRUE(next);
  EXPECT_GT(next->port(), port);
  const auto none = FabricReservation::make(port, port, 0);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("in use"));
  EXPECT_FALSE(FabricReservation::make(0, 10, 0));
  EXPECT_FALSE(FabricReservation::make(20, 10, 0));
}

// What the connections of the last job on a port leave behind must not keep the next one from it.
TEST(Fabric, ConnectionsInTimeWaitDoNotMatter) {
  std::optional<FabricReservation> first = FabricReservation::make(61000, 65000, 99).value();
  const auto port = first->port();
  auto listening = first->listen();
  ASSERT_TRUE(listening);
  const UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  ASSERT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  UniqueFd server(accept4(listening->get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(server.is_valid());
  server.reset();  // whoever closes first keeps the port
  char byte = 0;
  ASSERT_EQ(read(client.get(), &byte, 1), 0);
  listening->reset();
  EXPECT_FALSE(FabricReservation::make(port, port, 0)) << "one job at a time";
  first.reset();
  EXPECT_EQ(try_bind(port, false, false), EADDRINUSE) << "of a connection in TIME-WAIT";
  EXPECT_TRUE(FabricReservation::make(port, port, 0));
}

class FabricCheck : public ::testing::Test {
 protected:
  std::uint16_t open() {
    v1::FabricListen request;
    request.set_port_low(61000);
    request.set_port_high(65535);
    request.set_nonce(nonce_);
    request.set_listen(true);
    return static_cast<std::uint16_t>(port_.open(request, kCheckedJob).port());
  }
  v1::FabricProbeReply probe(const std::vector<std::string>& candidates, std::uint16_t port,
                             const std::string& nonce, const std::string& job = kCheckedJob) {
    v1::FabricProbe request;
    for (const auto& candidate : candidates) request.add_candidates(candidate);
    request.set_port(port);
    request.set_nonce(nonce);
    request.set_timeout_ms(300);
    v1::FabricProbeReply reply;
    boost::asio::co_spawn(loop_, probe_fabric(request, job),
                          [this, &reply](const std::exception_ptr&, v1::FabricProbeReply result) {
                            reply = std::move(result);
                            loop_.stop();
                          });
    loop_.restart();
    loop_.run();
    return reply;
  }
  const std::string nonce_ = "0123456789abcdef";
  Loop loop_;
  MasterPort port_{loop_};
};

TEST_F(FabricCheck, ReachesNode0AndTellsItsOwnAddress) {
  const auto port = open();
  ASSERT_NE(port, 0);
  const auto reply = probe({"127.0.0.1", "127.0.0.9", "nonsense"}, port, nonce_);
  ASSERT_EQ(reply.results_size(), 3);
  EXPECT_TRUE(reply.results(0).reached()) << reply.results(0).error();
  EXPECT_EQ(reply.results(0).local_address(), "127.0.0.1");
  EXPECT_EQ(reply.results(0).interface(), "lo");
  EXPECT_TRUE(reply.results(1).reached());
  EXPECT_FALSE(reply.results(2).reached());
  EXPECT_EQ(reply.results(2).error(), "not a numeric address");
}

TEST_F(FabricCheck, WrongNonceOrAnotherJobIsNotNode0) {
  const auto port = open();
  const auto wrong = probe({"127.0.0.1"}, port, "fedcba9876543210");
  EXPECT_FALSE(wrong.results(0).reached());
  EXPECT_EQ(wrong.results(0).error(), "answered by another program");
  const auto other = probe({"127.0.0.1"}, port, nonce_, std::string(32, 'f'));
  EXPECT_EQ(other.results(0).error(), "answered by another program");
}

TEST_F(FabricCheck, AfterTheCheckNobodyListensButThePortIsHeld) {
  const auto port = open();
  port_.end_check();
  const auto reply = probe({"127.0.0.1"}, port, nonce_);
  EXPECT_EQ(reply.results(0).error(), "connection refused");
  EXPECT_EQ(try_bind(port, false, false), EADDRINUSE);
  EXPECT_EQ(try_bind(port, true, true), 0);
}

TEST_F(FabricCheck, SilentListenerIsNoAnswer) {
  const UniqueFd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(silent.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(silent.get(), 1), 0);
  ASSERT_EQ(getsockname(silent.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const auto reply = probe({"127.0.0.1"}, ntohs(address.sin_port), nonce_);
  EXPECT_EQ(reply.results(0).error(), "no answer in 0.3 s");
}

TEST(FabricAnswer, IsParsedBackAndOnlyForTheJob) {
  EXPECT_EQ(parse_fabric_answer(fabric_answer("job", "10.0.0.1"), "job"), "10.0.0.1");
  EXPECT_EQ(parse_fabric_answer(fabric_answer("job", "10.0.0.1"), "jo"), "");
  EXPECT_EQ(parse_fabric_answer("hvdrun job 10.0.0.1", "job"), "");
  EXPECT_EQ(parse_fabric_answer("HTTP/1.1 400 Bad Request\r\n", "job"), "");
}

}  // namespace
}  // namespace hvd
