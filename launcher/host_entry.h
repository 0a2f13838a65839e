// One entry of a host list, "user@node[1-4]:8:port=2222", and the keys that entries and lines of
// hostfiles share. Pure; errors are exit 2 and name the token.
#pragma once

#include <string_view>
#include <vector>

#include "launcher/hostlist.h"

namespace hvd {

// The hosts of an entry; `more` are the numbers that follow it in the list: its further GPUs. Slots
// that only follow from the GPUs are not filled in (HostListBuilder does it).
[[nodiscard]] Result<std::vector<HostSpec>> parse_host_entry(
    std::string_view entry, const std::vector<std::string_view>& more = {});

// "slots=4", "port=22" and the like. A key that is there already is an error.
[[nodiscard]] Result<void> set_slots(HostSpec& host, std::string_view value);
[[nodiscard]] Result<void> set_port(HostSpec& host, std::string_view value);
[[nodiscard]] Result<void> set_user(HostSpec& host, std::string_view value);
[[nodiscard]] Result<void> set_gpus(HostSpec& host, std::string_view value);

}  // namespace hvd
