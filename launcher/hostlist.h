// Host lists as users write them: -H and --hostfile. Pure; errors are exit 2 and name the token.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hvd {

struct HostSpec {
  std::string name{};                    // as written; IPv6 without its brackets
  std::string user{};                    // empty: the transport's default
  std::uint16_t port = 0;                // 0: the transport's default
  std::optional<std::uint32_t> slots{};  // nullopt: as many as GPUs, 1 without

  // The name as it stands in messages and in HOROVOD_HOSTNAME.
  [[nodiscard]] const std::string& label() const { return name; }
};

// "node1:8,user@node2:4,[fd00::1]:2,node3". An entry with zero slots is left out and told in
// `notes`. The same user, name and port again adds its slots to the first entry and is told. Blanks
// around entries and colons do not count. Never empty.
[[nodiscard]] Result<std::vector<HostSpec>> parse_hosts(std::string_view text,
                                                        std::vector<std::string>* notes);

// Lines "host", "host slots=N", "host:N", each also with "port=N"; '#' comments, any line ends.
// `path` is for messages.
[[nodiscard]] Result<std::vector<HostSpec>> parse_hostfile(std::string_view text,
                                                           std::string_view path,
                                                           std::vector<std::string>* notes);

// The list in the form of -H; unknown slots are left away. Long lists are cut for a sentence.
[[nodiscard]] std::string format_hosts(const std::vector<HostSpec>& hosts);

// Letters, digits, '_', '.', '-', not starting with '-'; or an IPv6 address, also with a zone.
[[nodiscard]] bool is_host_name(std::string_view name);

// "node2:1": what a blank instead of a comma makes of a host list's second entry.
[[nodiscard]] bool looks_like_host(std::string_view word);

}  // namespace hvd
