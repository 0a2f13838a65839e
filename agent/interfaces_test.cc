#include "agent/interfaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;
using ::testing::ElementsAre;

v1::Interface make_interface(const std::string& name, std::uint32_t speed) {
  v1::Interface interface;
  interface.set_name(name);
  interface.set_speed_mbit(speed);
  interface.set_is_up(true);
  interface.set_is_loopback(name == "lo");
  interface.set_is_virtual(is_virtual_interface(name));
  return interface;
}

std::vector<std::string> names(const std::vector<v1::Interface>& interfaces) {
  std::vector<std::string> result;
  for (const auto& interface : interfaces) result.push_back(interface.name());
  return result;
}

TEST(Interfaces, OrdersBySpeedThenRouteWithVirtualAndLoopbackLast) {
  std::vector<v1::Interface> interfaces = {
      make_interface("lo", 0),       make_interface("docker0", 10000),
      make_interface("eth0", 1000),  make_interface("eth1", 1000),
      make_interface("ib0", 200000), make_interface("eth9", 400000)};
  interfaces.back().set_is_up(false);
  order_interfaces(&interfaces, {"eth1", "eth0"});
  EXPECT_THAT(names(interfaces), ElementsAre("ib0", "eth1", "eth0", "docker0", "lo", "eth9"));
}

TEST(Interfaces, ReadsDefaultRoutesFirstByMetric) {
  const std::string table =
      "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
      "eth2\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
      "wlan0\t00000000\t0100A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n"
      "eth0\t00000000\t0100A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
      "eth0\t0000A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n";
  EXPECT_THAT(parse_route_order(table), ElementsAre("eth0", "wlan0", "eth2"));
  EXPECT_TRUE(parse_route_order("").empty());
  EXPECT_TRUE(parse_route_order("garbage\nmore").empty());
}

TEST(Interfaces, LoopbackHasItsAddress) {
  const auto interfaces = read_interfaces();
  EXPECT_EQ(interface_of("127.0.0.1", interfaces), "lo");
  EXPECT_EQ(interface_of("192.0.2.1", interfaces), "");
  for (const auto& interface : interfaces) {
    EXPECT_EQ(interface.addresses_size(), interface.prefix_lengths_size());
    for (const auto& address : interface.addresses()) EXPECT_NE(address.substr(0, 4), "fe80");
  }
}

}  // namespace
}  // namespace hvd
