// Host lists as users write them on the command line. Pure; errors are exit 2 and name the token.
// Hostfiles: hostfile.h. The rule for repeated hosts: host_list_builder.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "proto/worker_env.h"

namespace hvd {

struct HostSpec {
  std::string name{};                    // as written; IPv6 without its brackets
  std::string user{};                    // empty: the transport's default
  std::uint16_t port = 0;                // 0: the transport's default
  std::optional<std::uint32_t> slots{};  // nullopt: as many as GPUs, 1 without
  std::vector<std::string> gpus{};       // for CUDA_VISIBLE_DEVICES; empty: those of the node
  std::string key{};                     // ssh identity file; empty: the transport's default
  EnvList env{};                         // of this host's ranks, over -x

  // The name as it stands in messages and in HOROVOD_HOSTNAME.
  [[nodiscard]] const std::string& label() const { return name; }
};

// "node1:8,user@node[2-4]:4,[fd00::1]:2,node5,node6:0,2,4,node7:8:port=2222:gpus=0-3". Commas part
// hosts; a number (or range of numbers) that stands alone between them is a further GPU of the host
// before it, which must have begun such a list: "node6:0,2,4" are GPUs 0, 2 and 4 with a slot each,
// while "node6:4" alone are four slots. An entry with zero slots is left out and told in `notes`.
// Blanks around entries and colons do not count. Never empty.
[[nodiscard]] Result<std::vector<HostSpec>> parse_hosts(std::string_view text,
                                                        std::vector<std::string>* notes);

// The list in the form of -H; unknown slots are left away. Long lists are cut for a sentence.
[[nodiscard]] std::string format_hosts(const std::vector<HostSpec>& hosts);

// Letters, digits, '_', '.', '-', not starting with '-'; or an IPv6 address, also with a zone.
[[nodiscard]] bool is_host_name(std::string_view name);

// "node2:1": what a blank instead of a comma makes of a host list's second entry.
[[nodiscard]] bool looks_like_host(std::string_view word);

}  // namespace hvd
