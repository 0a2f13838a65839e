#include "proto/worker_env.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>

namespace hvd {
namespace {

// The person's and the session's own, which mean another thing on a node.
constexpr std::array kPersonalNames = {
    "HOME",       "USER",   "LOGNAME",         "SHELL",
    "HOSTNAME",   "PWD",    "OLDPWD",          "SHLVL",
    "_",          "TMPDIR", "DISPLAY",         "WAYLAND_DISPLAY",
    "XAUTHORITY", "MAIL",   "TERM_SESSION_ID",
};
constexpr const char* kOwnPrefix = "HVDRUN_";
constexpr std::array kPersonalPrefixes = {"SSH_", "XDG_", "DBUS_", kOwnPrefix};

// Rank variables of torch, Horovod, MPI and PMI launchers and of DeepSpeed.
constexpr std::array kLauncherNames = {
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "ROLE_NAME",
    "MASTER_ADDR",
    "MASTER_PORT",
    "MASTER_HOST",
    "NODE_RANK",
    "LOCAL_SIZE",
    "CROSS_RANK",
    "CROSS_SIZE",
    "HOROVOD_RANK",
    "HOROVOD_SIZE",
    "HOROVOD_LOCAL_RANK",
    "HOROVOD_LOCAL_SIZE",
    "HOROVOD_CROSS_RANK",
    "HOROVOD_CROSS_SIZE",
    "HOROVOD_HOSTNAME",
    "HOROVOD_CONTROLLER",
    "HOROVOD_CPU_OPERATIONS",
    "HOROVOD_ELASTIC",
    "HOROVOD_GLOO_RENDEZVOUS_ADDR",
    "HOROVOD_GLOO_RENDEZVOUS_PORT",
    "HOROVOD_GLOO_IFACE",
    "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS",
    "ACCELERATE_PROCESS_INDEX",
};
constexpr std::array kLauncherPrefixes = {
    "TORCHELASTIC_", "OMPI_COMM_WORLD_", "OMPI_UNIVERSE_", "OMPI_WORLD_", "PMI_",       "PMIX_",
    "PRTE_",         "HYDRA_",           "SLURM_",         "SLURMD_",     "FLUX_TASK_", "FLUX_JOB_",
    "PALS_",         "MPIEXEC_",         "JSM_NAMESPACE_",
};

template <typename Names, typename Prefixes>
bool is_listed(std::string_view name, const Names& names, const Prefixes& prefixes) {
  const auto is_name = [name](const char* listed) { return name == listed; };
  const auto is_prefix = [name](const char* listed) { return name.starts_with(listed); };
  return std::any_of(names.begin(), names.end(), is_name) ||
         std::any_of(prefixes.begin(), prefixes.end(), is_prefix);
}

// The last rule whose pattern matches; nullptr: none does.
const EnvRule* deciding_rule(std::string_view name, const std::vector<EnvRule>& rules) {
  const auto found = std::find_if(rules.rbegin(), rules.rend(), [name](const EnvRule& rule) {
    return matches_pattern(rule.pattern, name);
  });
  return found == rules.rend() ? nullptr : &*found;
}

// "10.1.0.1:61000", "[fd00::1]:61000".
std::string host_and_port(std::string_view host, std::uint32_t port) {
  const bool is_bare_v6 = host.find(':') != std::string_view::npos;
  return is_bare_v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

}  // namespace

bool is_personal(std::string_view name) {
  return is_listed(name, kPersonalNames, kPersonalPrefixes);
}

std::string personal_names() {
  return fmt::format("{}, {}*", fmt::join(kPersonalNames, ", "),
                     fmt::join(kPersonalPrefixes, "*, "));
}

bool is_of_another_launcher(std::string_view name) {
  return is_listed(name, kLauncherNames, kLauncherPrefixes);
}

bool is_denied(std::string_view name) { return is_personal(name) || is_of_another_launcher(name); }

bool matches_pattern(std::string_view pattern, std::string_view name) {
  return ::fnmatch(std::string(pattern).c_str(), std::string(name).c_str(), FNM_NOESCAPE) == 0;
}

bool does_travel(std::string_view name, const std::vector<EnvRule>& rules) {
  if (name.starts_with(kOwnPrefix)) return false;
  const EnvRule* rule = deciding_rule(name, rules);
  return rule != nullptr ? rule->is_allow : !is_denied(name);
}

EnvList split_environ(const char* const* environ) {
  EnvList result;
  for (; environ != nullptr && *environ != nullptr; ++environ) {
    const std::string_view entry(*environ);
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    result.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return result;
}

EnvList filter_launcher_env(const EnvList& environment, const std::vector<EnvRule>& rules) {
  EnvList result;
  for (const auto& variable : environment) {
    if (does_travel(variable.first, rules)) result.push_back(variable);
  }
  return result;
}

EnvList own_rank_variables() {
  EnvList variables = node_env("", 0, "", 0, "");
  for (auto& variable : rank_env({})) variables.push_back(std::move(variable));
  return variables;
}

EnvList take_environment() {
  EnvList environment = split_environ(environ);
  unsetenv("GRPC_TRACE");
  setenv("GRPC_ENABLE_FORK_SUPPORT", "0", 1);
  setenv("GRPC_VERBOSITY", "NONE", 1);
  return environment;
}

std::vector<std::string> kept_from_local_ranks(const EnvList& environment,
                                               const std::vector<EnvRule>& rules) {
  std::vector<std::string> names(kOwnGrpcNames.begin(), kOwnGrpcNames.end());
  for (const auto& [name, value] : environment) {
    const EnvRule* rule = deciding_rule(name, rules);
    const bool is_nodes_own = is_personal(name) || name == "PATH";
    const bool is_denied_by_rule = rule != nullptr && !rule->is_allow && !is_nodes_own;
    if (is_denied_by_rule || name.starts_with(kOwnPrefix)) names.push_back(name);
  }
  return names;
}

EnvList rank_env(const RankPlace& place, const AttemptPlace& attempt) {
  const auto text = [](std::uint32_t value) { return fmt::format_int(value).str(); };
  return {
      {"RANK", text(place.rank)},
      {"WORLD_SIZE", text(place.size)},
      {"LOCAL_RANK", text(place.local_rank)},
      {"LOCAL_WORLD_SIZE", text(place.local_size)},
      {"GROUP_RANK", text(place.node)},
      {"GROUP_WORLD_SIZE", text(place.num_nodes)},
      {"ROLE_RANK", text(place.rank)},
      {"ROLE_WORLD_SIZE", text(place.size)},
      {"ROLE_NAME", "default"},
      {"TORCHELASTIC_RESTART_COUNT", text(attempt.restart_count)},
      {"TORCHELASTIC_MAX_RESTARTS", text(attempt.max_restarts)},
      {"LOCAL_SIZE", text(place.local_size)},
      {"CROSS_RANK", text(place.cross_rank)},
      {"CROSS_SIZE", text(place.cross_size)},
      {"HOROVOD_HOSTNAME", place.host},
      {"HOROVOD_RANK", text(place.rank)},
      {"HOROVOD_SIZE", text(place.size)},
      {"HOROVOD_LOCAL_RANK", text(place.local_rank)},
      {"HOROVOD_LOCAL_SIZE", text(place.local_size)},
      {"HOROVOD_CROSS_RANK", text(place.cross_rank)},
      {"HOROVOD_CROSS_SIZE", text(place.cross_size)},
  };
}

EnvList node_env(std::string_view job_id, std::uint32_t node, std::string_view master_addr,
                 std::uint32_t master_port, std::string_view address) {
  return {
      {"MASTER_ADDR", std::string(master_addr)},
      {"MASTER_PORT", fmt::format_int(master_port).str()},
      {"MASTER_HOST", host_and_port(master_addr, master_port)},
      {"HVDRUN_JOB_ID", std::string(job_id)},
      {"HVDRUN_NODE", fmt::format_int(node).str()},
      {"HVDRUN_ADDRESS", std::string(address)},
  };
}

EnvList torchelastic_env(std::string_view job_id) {
  return {{"TORCHELASTIC_RUN_ID", std::string(job_id)}, {"TORCHELASTIC_USE_AGENT_STORE", "False"}};
}

EnvList node_env_if_unset(std::uint32_t local_size, std::uint32_t num_nodes,
                          std::string_view interface) {
  EnvList result = {{"PYTHONUNBUFFERED", "1"}, {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"}};
  if (local_size > 1) result.emplace_back("OMP_NUM_THREADS", "1");
  if (num_nodes > 1 && !interface.empty()) {
    result.emplace_back("GLOO_SOCKET_IFNAME", std::string(interface));
    result.emplace_back("NCCL_SOCKET_IFNAME", fmt::format("={}", interface));
  }
  return result;
}

EnvList horovod_env(std::string_view address, std::uint32_t port) {
  return {
      {"HOROVOD_GLOO_RENDEZVOUS_ADDR", std::string(address)},
      {"HOROVOD_GLOO_RENDEZVOUS_PORT", fmt::format_int(port).str()},
      {"HOROVOD_CONTROLLER", "gloo"},
      {"HOROVOD_CPU_OPERATIONS", "gloo"},
  };
}

EnvList horovod_env_if_unset(std::string_view interface) {
  if (interface.empty()) return {};
  return {{"HOROVOD_GLOO_IFACE", std::string(interface)}};
}

EnvList merge_env(const std::vector<const EnvList*>& layers, const EnvList& if_unset) {
  std::map<std::string, std::string> merged;
  for (const EnvList* layer : layers) {
    for (const auto& [name, value] : *layer) merged[name] = value;
  }
  for (const auto& [name, value] : if_unset) merged.try_emplace(name, value);
  return {merged.begin(), merged.end()};
}

std::optional<std::string> find_env(const EnvList& environment, std::string_view name) {
  // The last one counts, as in a merged list of layers.
  const auto found = std::find_if(environment.rbegin(), environment.rend(),
                                  [name](const auto& variable) { return variable.first == name; });
  if (found == environment.rend()) return std::nullopt;
  return found->second;
}

std::string env_value(const EnvList& environment, std::string_view name) {
  return find_env(environment, name).value_or("");
}

}  // namespace hvd
