// Numeric IP addresses and subnets. Pure.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <optional>
#include <string_view>

namespace hvd {

using IpAddress = boost::asio::ip::address;

struct Subnet {
  IpAddress address;
  unsigned prefix_length = 0;

  [[nodiscard]] bool contains(const IpAddress& other) const;
};

[[nodiscard]] std::optional<IpAddress> parse_ip(std::string_view text);

// "10.9.0.0/16", "fd00::/8", or one address alone.
[[nodiscard]] std::optional<Subnet> parse_subnet(std::string_view text);

// 127.0.0.0/8, ::1, and the IPv4 loopback written as IPv6.
[[nodiscard]] bool is_loopback_address(std::string_view text);

}  // namespace hvd
