#include "runtime/nccl_variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <string_view>

namespace hvd {
namespace {

constexpr const char* kLimits =
    "NCCL has no such limit; the runtime's own limits are given to its calls and to hvdrun "
    "(--start-timeout)";
constexpr const char* kTorch =
    "it was PyTorch's and is spelled TORCH_NCCL_... there now; the runtime always waits with a "
    "limit and always ends on an error";
constexpr const char* kGdrLevel = "use NCCL_NET_GDR_LEVEL";
constexpr const char* kChannels = "use NCCL_MIN_CTAS and NCCL_MAX_CTAS";
constexpr const char* kProtocol = "use NCCL_PROTO and NCCL_ALGO";

struct Unread {
  const char* name;
  const char* remedy;
};
constexpr std::array kUnread = {
    Unread{"NCCL_SOCKET_TIMEOUT", kLimits},
    Unread{"NCCL_TIMEOUT", kLimits},
    Unread{"NCCL_LAUNCH_TIMEOUT", kLimits},
    Unread{"NCCL_BLOCKING_WAIT", kTorch},
    Unread{"NCCL_ASYNC_ERROR_HANDLING", kTorch},
    Unread{"NCCL_DESYNC_DEBUG", kTorch},
    Unread{"NCCL_ENABLE_TIMING", kTorch},
    Unread{"NCCL_IB_CUDA_SUPPORT", kGdrLevel},
    Unread{"NCCL_IB_GDR_LEVEL", kGdrLevel},
    Unread{"NCCL_LL_THRESHOLD", kProtocol},
    Unread{"NCCL_TREE_THRESHOLD", kProtocol},
    Unread{"NCCL_SINGLE_RING_THRESHOLD", kProtocol},
    Unread{"NCCL_MIN_NRINGS", kChannels},
    Unread{"NCCL_MAX_NRINGS", kChannels},
    Unread{"NCCL_LAUNCH_MODE", "leave it out: NCCL launches in one way only by now"},
    Unread{"NCCL_CHECKS_DISABLE",
           "leave it out: NCCL checks its arguments only if "
           "NCCL_CHECK_POINTERS=1"},
};

// Rightly different on different ranks, or without influence on what NCCL does.
constexpr std::array kOwnOfARank = {
    "NCCL_HOSTID",    "NCCL_SOCKET_IFNAME",  "NCCL_IB_HCA",          "NCCL_DEBUG",
    "NCCL_CONF_FILE", "NCCL_DEBUG_SUBSYS",   "NCCL_DEBUG_FILE",      "NCCL_TOPO_FILE",
    "NCCL_COMM_ID",   "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_DUMP_FILE",
};

bool is_told(const std::string& name) {
  return name.rfind("NCCL_", 0) == 0 &&
         std::find(kOwnOfARank.begin(), kOwnOfARank.end(), name) == kOwnOfARank.end();
}

// "NAME=value" a line; '#' begins a comment.
EnvList parse_file(const std::string& text) {
  EnvList found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find('=');
    if (line.empty() || line.front() == '#' || equals == std::string::npos) continue;
    found.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  }
  return found;
}

}  // namespace

std::vector<std::string> nccl_variable_warnings(const EnvList& environment) {
  std::vector<std::string> warnings;
  for (const Unread& unread : kUnread) {
    const auto value = find_env(environment, unread.name);
    if (!value) continue;
    warnings.push_back(fmt::format("{}={} has no effect: NCCL does not read it; {}", unread.name,
                                   *value, unread.remedy));
  }
  if (const auto value = find_env(environment, "NCCL_COMM_BLOCKING")) {
    warnings.push_back(fmt::format(
        "NCCL_COMM_BLOCKING={} overrides how the runtime opens its communicators, and with 1 no "
        "time limit holds while they start; unset it",
        *value));
  }
  return warnings;
}

bool allows_shared_gpu(const EnvList& environment) {
  return env_value(environment, "HVDRUN_ALLOW_SHARED_GPU") == "1";
}

EnvList nccl_defaults(const EnvList& environment, int rank) {
  EnvList defaults = {{"NCCL_RUNTIME_CONNECT", "0"}};  // all connections before the first step
  if (allows_shared_gpu(environment)) {
    defaults.emplace_back("NCCL_SOCKET_IFNAME", "lo");
    defaults.emplace_back("NCCL_IB_DISABLE", "1");
  }
  std::erase_if(defaults, [&](const auto& variable) {
    return find_env(environment, variable.first).has_value();
  });
  if (allows_shared_gpu(environment)) {
    defaults.emplace_back("NCCL_HOSTID", fmt::format("hvdrun-rank-{}", rank));
  }
  return defaults;
}

std::vector<std::string> nccl_settings(const EnvList& environment,
                                       const std::vector<std::string>& files) {
  std::map<std::string, std::string> settings;
  for (const auto& [name, value] : environment) {
    if (is_told(name)) settings[name] = value;
  }
  for (const std::string& file : files) {
    for (const auto& [name, value] : parse_file(file)) {
      if (is_told(name)) settings.try_emplace(name, value);
    }
  }
  std::vector<std::string> told;
  for (const auto& [name, value] : settings) told.push_back(fmt::format("{}={}", name, value));
  return told;
}

std::vector<std::string> nccl_configuration_files(const EnvList& environment) {
  std::vector<std::string> paths;
  if (const auto own = find_env(environment, "NCCL_CONF_FILE"); own && !own->empty()) {
    paths.push_back(*own);
  } else if (const auto home = find_env(environment, "HOME"); home && !home->empty()) {
    paths.push_back(*home + "/.nccl.conf");
  }
  paths.emplace_back("/etc/nccl.conf");
  return paths;
}

}  // namespace hvd
