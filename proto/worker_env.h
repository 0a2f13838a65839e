// The variables a worker is given or denied, in one place. Order of precedence, weakest first: the
// node's own environment, the launcher's (without the deny list), the user's -x, ours. Names and
// values are bytes. Pure.
#pragma once

#include <array>
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

// The person's and the session's own, which mean another thing on a node: HOME, SSH_*, XDG_*, ...
// and HVDRUN_*.
[[nodiscard]] bool is_personal(std::string_view name);
[[nodiscard]] std::string personal_names();  // "HOME, ..., SSH_*", for the manual

// Tells a process its place in the job of another launcher: RANK, SLURM_*, PMI_*, ...
[[nodiscard]] bool is_of_another_launcher(std::string_view name);
// Either: the launcher's value of this name stays at home, unless a rule says otherwise.
[[nodiscard]] bool is_denied(std::string_view name);

// --env-allow or --env-deny with a pattern, in the order of the command line.
struct EnvRule {
  bool is_allow = false;
  std::string pattern;
};
// As in a shell: '*' any characters, '?' one, '[...]' one of these; case counts.
[[nodiscard]] bool matches_pattern(std::string_view pattern, std::string_view name);
// The last rule that matches decides, without one the deny list. HVDRUN_* never travels.
[[nodiscard]] bool does_travel(std::string_view name, const std::vector<EnvRule>& rules);

// Splits a null-terminated environ array into pairs; entries without '=' are left out.
[[nodiscard]] EnvList split_environ(const char* const* environ);

// The launcher's environment as it travels to the nodes.
[[nodiscard]] EnvList filter_launcher_env(const EnvList& environment,
                                          const std::vector<EnvRule>& rules = {});

// What hvdrun and its agents set for gRPC in their own processes.
inline constexpr std::array kOwnGrpcNames = {"GRPC_ENABLE_FORK_SUPPORT", "GRPC_VERBOSITY"};

// Every variable that each rank gets from hvdrun whatever the job, with values of no job: for who
// asks for the names.
[[nodiscard]] EnvList own_rank_variables();

// The environment that this process was given: the user's values, also for gRPC, are for the ranks.
// From now on gRPC installs no fork handlers here and prints nothing. Once, before other threads.
[[nodiscard]] EnvList take_environment();

// Names that an agent on this machine has inherited and its ranks must not: those that a rule
// denies, and those that ranks of no other node get either (HVDRUN_*, kOwnGrpcNames). What is a
// node's own everywhere (HOME, ..., PATH) stays.
[[nodiscard]] std::vector<std::string> kept_from_local_ranks(const EnvList& environment,
                                                             const std::vector<EnvRule>& rules);

// What every rank of the job is told about itself: the names of torch, Horovod and DeepSpeed.
[[nodiscard]] EnvList rank_env(const RankPlace& place, const AttemptPlace& attempt = {});

// With --torchelastic: how scripts tell that torchrun has started them. Rank 0 serves the store.
[[nodiscard]] EnvList torchelastic_env(std::string_view job_id);

// What the whole node is told; MASTER_HOST is torchpack's "address:port". `address` is the node's
// own numeric fabric address, `interface` its name; both set socket interface hints only where
// there is more than one node (see node_env_if_unset).
[[nodiscard]] EnvList node_env(std::string_view job_id, std::uint32_t node,
                               std::string_view master_addr, std::uint32_t master_port,
                               std::string_view address);

// Ours where nobody set the name: PYTHONUNBUFFERED, TORCH_NCCL_ASYNC_ERROR_HANDLING,
// OMP_NUM_THREADS, interface hints.
[[nodiscard]] EnvList node_env_if_unset(std::uint32_t local_size, std::uint32_t num_nodes,
                                        std::string_view interface);

// Where the job has a store for Horovod's ranks: its IPv4 address and port, and that Gloo is to be
// used, because a Horovod that was built with MPI would use that.
[[nodiscard]] EnvList horovod_env(std::string_view address, std::uint32_t port);

// The interface of this node whose address Horovod's Gloo gives to the other ranks; else it would
// resolve the host's name, which is 127.0.1.1 on many machines. Empty: not known.
[[nodiscard]] EnvList horovod_env_if_unset(std::string_view interface);

// The complete environment of a worker; later lists win, `if_unset` fills what is then missing.
// Each name stands once; order is by name.
[[nodiscard]] EnvList merge_env(const std::vector<const EnvList*>& layers, const EnvList& if_unset);

[[nodiscard]] std::optional<std::string> find_env(const EnvList& environment,
                                                  std::string_view name);
// Empty where it is not set, too.
[[nodiscard]] std::string env_value(const EnvList& environment, std::string_view name);

}  // namespace hvd
