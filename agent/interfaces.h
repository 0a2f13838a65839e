// The node's network interfaces in the order in which the fabric check prefers them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hvdrun/v1/agent.pb.h"

namespace hvd {

// Whether the name is that of a bridge or a pair of a container or virtual machine. Pure.
[[nodiscard]] bool is_virtual_interface(std::string_view name);

// Names of interfaces in the order of the kernel's routes (text of /proc/net/route): default routes
// first, by metric. Pure.
[[nodiscard]] std::vector<std::string> parse_route_order(std::string_view route_table);

// Up before down, real before virtual before loopback, then by link speed, then by route order.
// Pure.
void order_interfaces(std::vector<hvdrun::v1::Interface>* interfaces,
                      const std::vector<std::string>& route_order);

// Reads them all; never fails, at worst there are none.
[[nodiscard]] std::vector<hvdrun::v1::Interface> read_interfaces();

// The name of the interface that has this numeric address; empty if there is none.
[[nodiscard]] std::string interface_of(std::string_view address,
                                       const std::vector<hvdrun::v1::Interface>& interfaces);

}  // namespace hvd
