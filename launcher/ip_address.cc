#include "launcher/ip_address.h"

#include <charconv>
#include <string>
#include <vector>

namespace hvd {
namespace {

std::vector<unsigned char> bytes_of(const IpAddress& address) {
  if (address.is_v4()) {
    const auto bytes = address.to_v4().to_bytes();
    return {bytes.begin(), bytes.end()};
  }
  const auto bytes = address.to_v6().to_bytes();
  return {bytes.begin(), bytes.end()};
}

unsigned num_bits(const IpAddress& address) { return address.is_v4() ? 32 : 128; }

}  // namespace

bool Subnet::contains(const IpAddress& other) const {
  if (address.is_v4() != other.is_v4()) return false;
  const auto ours = bytes_of(address);
  const auto theirs = bytes_of(other);
  for (unsigned bit = 0; bit < prefix_length; ++bit) {
    const unsigned mask = 0x80U >> (bit % 8);
    if ((ours[bit / 8] & mask) != (theirs[bit / 8] & mask)) return false;
  }
  return true;
}

std::optional<IpAddress> parse_ip(std::string_view text) {
  boost::system::error_code error;
  const IpAddress address = boost::asio::ip::make_address(std::string(text), error);
  if (error) return std::nullopt;
  return address;
}

std::optional<Subnet> parse_subnet(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto address = parse_ip(text.substr(0, slash));
  if (!address) return std::nullopt;
  Subnet subnet{*address, num_bits(*address)};
  if (slash == std::string_view::npos) return subnet;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + slash + 1, end, subnet.prefix_length);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  if (subnet.prefix_length > num_bits(*address)) return std::nullopt;
  return subnet;
}

bool is_loopback_address(std::string_view text) {
  const auto address = parse_ip(text);
  if (!address) return false;
  if (address->is_v6() && address->to_v6().is_v4_mapped()) {
    return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address->to_v6())
        .is_loopback();
  }
  return address->is_loopback();
}

}  // namespace hvd
