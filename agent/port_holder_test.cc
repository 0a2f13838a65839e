#include "agent/port_holder.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace hvd {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr std::string_view kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 "
    "4711 1 0000000000000000 100 0 0 10 0\n"
    "   1: 0100007F:1F90 0100007F:D2F0 01 00000000:00000000 00:00000000 00000000     0        0 "
    "4712 1 0000000000000000 100 0 0 10 0\n"
    "   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
    "4713 1 0000000000000000 100 0 0 10 0\n";

TEST(PortHolder, OnlySocketsThatListenOnThePortCount) {
  const auto listeners = parse_port_listeners(kTable, 8080);
  ASSERT_THAT(listeners, SizeIs(1));
  EXPECT_EQ(listeners[0].socket, "4711");
  EXPECT_EQ(listeners[0].user, 1000U);
  EXPECT_THAT(parse_port_listeners(kTable, 22), SizeIs(1));
  EXPECT_THAT(parse_port_listeners(kTable, 23), SizeIs(0));
  EXPECT_THAT(parse_port_listeners("", 22), SizeIs(0));
}

TEST(PortHolder, IsNamedWithItsCommand) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* name = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(socket.get(), name, size), 0);
  ASSERT_EQ(::getsockname(socket.get(), name, &size), 0);
  const std::uint16_t port = ntohs(address.sin_port);
  EXPECT_EQ(find_port_holder(port, "job", 0), "") << "bound only, as a reservation is";
  ASSERT_EQ(::listen(socket.get(), 1), 0);
  const std::string holder = find_port_holder(port, "job", 0);
  EXPECT_THAT(holder, HasSubstr("process " + std::to_string(getpid()) + " (uid "));
  EXPECT_THAT(holder, HasSubstr("_test"));
}

}  // namespace
}  // namespace hvd
