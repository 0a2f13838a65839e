// --include and --exclude: which of the hosts, wherever they come from, are used. Pure; errors are
// exit 2 and name the token.
#pragma once

#include <string_view>
#include <vector>

#include "launcher/hostlist.h"

namespace hvd {

// `list` holds patterns of names parted by ',' or '@': names as written in the host list, ranges
// "node[1-4]", '*' and '?'. A pattern may select GPUs, "node2:0,2-3" (what a host list would take
// for slots is a GPU here, too). The hosts that match stay, in their order; GPUs that are selected
// become theirs, with a slot each. A pattern that matches nothing is an error.
[[nodiscard]] Result<std::vector<HostSpec>> include_hosts(std::vector<HostSpec> hosts,
                                                          std::string_view list);

// The hosts that match go, or only the GPUs that are selected of them: these are counted among the
// GPUs of the host list or, where it names none, 0 to slots - 1.
[[nodiscard]] Result<std::vector<HostSpec>> exclude_hosts(std::vector<HostSpec> hosts,
                                                          std::string_view list);

}  // namespace hvd
