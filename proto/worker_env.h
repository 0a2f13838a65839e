// The variables a worker is given or denied, in one place. Order of precedence, weakest first: the
// node's own environment, the launcher's (without the deny list), the user's -x, ours. Names and
// values are bytes. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hvd {

using EnvList = std::vector<std::pair<std::string, std::string>>;

// Where one rank stands in its job. Cross: among the ranks with the same local rank.
struct RankPlace {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t local_rank = 0;
  std::uint32_t local_size = 1;
  std::uint32_t cross_rank = 0;
  std::uint32_t cross_size = 1;
  std::uint32_t node = 0;
  std::uint32_t num_nodes = 1;
  std::string host;  // as written in the host list
};

// Which attempt of the job this is, of how many (--max-restarts).
struct AttemptPlace {
  std::uint32_t restart_count = 0;
  std::uint32_t max_restarts = 0;
};

// Whether the launcher's value of this name stays at home (HOME, SSH_*, rank variables of others,
// ...).
[[nodiscard]] bool is_denied(std::string_view name);

// Splits a null-terminated environ array into pairs; entries without '=' are left out.
[[nodiscard]] EnvList split_environ(const char* const* environ);

// The launcher's environment as it travels to the nodes.
[[nodiscard]] EnvList filter_launcher_env(const EnvList& environment);

// What every rank of the job is told about itself: torch's and Horovod's names and HVDRUN_*.
[[nodiscard]] EnvList rank_env(const RankPlace& place, const AttemptPlace& attempt = {});

// What the whole node is told. `address` is the node's own numeric fabric address, `interface` its
// name; both set socket interface hints only where there is more than one node (see
// node_env_if_unset).
[[nodiscard]] EnvList node_env(std::string_view job_id, std::uint32_t node,
                               std::string_view master_addr, std::uint32_t master_port,
                               std::string_view address);

// Ours where nobody set the name: PYTHONUNBUFFERED, OMP_NUM_THREADS, interface hints.
[[nodiscard]] EnvList node_env_if_unset(std::uint32_t local_size, std::uint32_t num_nodes,
                                        std::string_view interface);

// The complete environment of a worker; later lists win, `if_unset` fills what is then missing.
// Each name stands once; order is by name.
[[nodiscard]] EnvList merge_env(const std::vector<const EnvList*>& layers, const EnvList& if_unset);

[[nodiscard]] std::optional<std::string> find_env(const EnvList& environment,
                                                  std::string_view name);

}  // namespace hvd
