#include "agent/interfaces.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <tuple>

#include "base/lines.h"
#include "base/read_file.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

std::vector<std::string_view> split_blanks(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return fields;
    const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    fields.push_back(line.substr(begin, end - begin));
    line.remove_prefix(end);
  }
}

// One row of /proc/net/route: Iface Destination Gateway Flags RefCnt Use Metric Mask ...
struct Route {
  std::string name;
  bool is_default = false;
  long metric = 0;
};

// The numeric text of an address; empty for what is no IP address or only link-local.
std::string address_text(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(address);
    return inet_ntop(AF_INET, &in->sin_addr, text.data(), text.size());
  }
  if (address->sa_family == AF_INET6) {
    const auto* in = reinterpret_cast<const sockaddr_in6*>(address);
    if (IN6_IS_ADDR_LINKLOCAL(&in->sin6_addr)) return {};
    return inet_ntop(AF_INET6, &in->sin6_addr, text.data(), text.size());
  }
  return {};
}

unsigned prefix_length(const sockaddr* mask) {
  if (mask == nullptr) return 0;
  unsigned bits = 0;
  const auto count = [&bits](const void* bytes, std::size_t size) {
    const auto* byte = static_cast<const unsigned char*>(bytes);
    for (std::size_t i = 0; i < size; ++i) bits += static_cast<unsigned>(std::popcount(byte[i]));
  };
  if (mask->sa_family == AF_INET) {
    count(&reinterpret_cast<const sockaddr_in*>(mask)->sin_addr, sizeof(in_addr));
  } else if (mask->sa_family == AF_INET6) {
    count(&reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr, sizeof(in6_addr));
  }
  return bits;
}

// Speed is -1 or an error where there is none; operstate is "unknown" on interfaces that never
// tell.
void read_link(v1::Interface* interface, unsigned flags) {
  const std::string folder = fmt::format("/sys/class/net/{}/", interface->name());
  const long speed = std::atol(read_small_file(folder + "speed").c_str());
  interface->set_speed_mbit(speed > 0 ? static_cast<std::uint32_t>(speed) : 0);
  const std::string state = read_first_line(folder + "operstate");
  const bool is_running = state.empty() || state == "up" || state == "unknown";
  interface->set_is_up((flags & IFF_UP) != 0 && is_running);
  interface->set_is_loopback((flags & IFF_LOOPBACK) != 0);
  interface->set_is_virtual(is_virtual_interface(interface->name()));
}

v1::Interface* find_or_add(std::vector<v1::Interface>* interfaces, const ifaddrs& entry) {
  for (v1::Interface& interface : *interfaces) {
    if (interface.name() == entry.ifa_name) return &interface;
  }
  v1::Interface& added = interfaces->emplace_back();
  added.set_name(entry.ifa_name);
  read_link(&added, entry.ifa_flags);
  return &added;
}

}  // namespace

bool is_virtual_interface(std::string_view name) {
  constexpr std::array kPrefixes = {"docker", "virbr", "veth",    "br-",
                                    "lxcbr",  "cni",   "flannel", "cali"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [name](const char* prefix) { return name.rfind(prefix, 0) == 0; });
}

std::vector<std::string> parse_route_order(std::string_view route_table) {
  std::vector<Route> routes;
  while (!route_table.empty()) {
    const auto fields = split_blanks(take_line(route_table));
    if (fields.size() < 8 || fields[0] == "Iface") continue;
    routes.push_back({std::string(fields[0]), fields[1] == "00000000",
                      std::atol(std::string(fields[6]).c_str())});
  }
  std::stable_sort(routes.begin(), routes.end(), [](const Route& a, const Route& b) {
    return std::tuple(!a.is_default, a.metric) < std::tuple(!b.is_default, b.metric);
  });
  std::vector<std::string> order;
  for (Route& route : routes) {
    if (std::find(order.begin(), order.end(), route.name) == order.end()) {
      order.push_back(std::move(route.name));
    }
  }
  return order;
}

void order_interfaces(std::vector<v1::Interface>* interfaces,
                      const std::vector<std::string>& route_order) {
  const auto rank = [&route_order](const v1::Interface& interface) {
    const int kind = interface.is_loopback() ? 2 : interface.is_virtual() ? 1 : 0;
    const auto route = std::find(route_order.begin(), route_order.end(), interface.name());
    return std::tuple(!interface.is_up(), kind, -static_cast<std::int64_t>(interface.speed_mbit()),
                      route - route_order.begin());
  };
  std::stable_sort(interfaces->begin(), interfaces->end(),
                   [&rank](const auto& a, const auto& b) { return rank(a) < rank(b); });
}

std::vector<v1::Interface> read_interfaces() {
  std::vector<v1::Interface> interfaces;
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) return interfaces;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(raw, &freeifaddrs);
  for (const ifaddrs* entry = raw; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    v1::Interface* interface = find_or_add(&interfaces, *entry);
    const std::string address = address_text(entry->ifa_addr);
    if (address.empty()) continue;
    interface->add_addresses(address);
    interface->add_prefix_lengths(prefix_length(entry->ifa_netmask));
  }
  order_interfaces(&interfaces, parse_route_order(read_small_file("/proc/net/route")));
  return interfaces;
}

std::string interface_of(std::string_view address, const std::vector<v1::Interface>& interfaces) {
  for (const v1::Interface& interface : interfaces) {
    for (const std::string& own : interface.addresses()) {
      if (own == address) return interface.name();
    }
  }
  return {};
}

}  // namespace hvd
