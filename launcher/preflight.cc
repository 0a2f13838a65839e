#include "launcher/preflight.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>

namespace hvd {
namespace {

constexpr std::int64_t kClockWarningNs = 2'000'000'000;
constexpr std::uint64_t kUnlimited = UINT64_MAX;

struct Refusals {
  std::vector<std::string> sentences;
  ExitCode code = ExitCode::kOk;

  // The worst reason decides: a missing directory or version comes before a missing command.
  void add(ExitCode reason, std::string sentence) {
    sentences.push_back(std::move(sentence));
    if (code == ExitCode::kOk || reason == ExitCode::kInfrastructure) code = reason;
  }
};

std::string join_hosts(const std::vector<std::string>& hosts) {
  return fmt::format("{}", fmt::join(hosts, ", "));
}

void check_cwd(const std::vector<NodeHello>& nodes, const std::string& cwd, Refusals& refusals) {
  std::map<int, std::vector<std::string>> by_errno;
  for (const NodeHello& node : nodes) {
    if (!node.reply.cwd_ok()) by_errno[node.reply.cwd_errno()].push_back(node.host);
  }
  for (const auto& [number, hosts] : by_errno) {
    refusals.add(ExitCode::kInfrastructure,
                 fmt::format("{}: cannot enter the working directory {}: {}; start hvdrun from a "
                             "directory that every node has, or send it with --stage",
                             join_hosts(hosts), cwd, std::strerror(number)));
  }
}

std::string remedy_for_missing(const std::string& command) {
  if (command.find(' ') != std::string::npos) {
    return "it has blanks: remove the quotes round the whole command, or write sh -c '...'";
  }
  if (command.find('/') != std::string::npos) {
    return "every node must have it under this path, or --stage must send it";
  }
  return "give its path, set PATH with -x PATH=..., or write sh -c '...' for a word of the shell";
}

void check_command(const std::vector<NodeHello>& nodes, const std::string& command,
                   Refusals& refusals) {
  std::map<int, std::vector<std::string>> by_errno;
  for (const NodeHello& node : nodes) {
    if (!node.reply.cwd_ok()) continue;
    if (const int number = node.reply.executable_errno()) by_errno[number].push_back(node.host);
  }
  for (const auto& [number, hosts] : by_errno) {
    if (number == ENOENT || number == ENOTDIR) {
      refusals.add(ExitCode::kNotFound,
                   fmt::format("{}: command not found: {}; {}", join_hosts(hosts), command,
                               remedy_for_missing(command)));
    } else {
      refusals.add(
          ExitCode::kNotExecutable,
          fmt::format("{}: cannot execute {}: {}{}", join_hosts(hosts), command,
                      std::strerror(number),
                      number == EACCES ? "; make it executable (chmod +x) or start it with "
                                         "its interpreter"
                                       : ""));
    }
  }
}

// Staged files stand in the job's folder, whose name is another on each node.
std::string path_in_job(const v1::HelloReply& reply) {
  const std::string& folder = reply.job_dir();
  const std::string& path = reply.executable();
  return !folder.empty() && path.starts_with(folder) ? path.substr(folder.size()) : path;
}

void warn_of_differences(const std::vector<NodeHello>& nodes, PreflightResult& result) {
  std::map<std::string, std::vector<std::string>> by_path;
  for (const NodeHello& node : nodes) {
    by_path[path_in_job(node.reply)].push_back(node.host);
    const double skew = static_cast<double>(node.realtime_offset_ns) / 1e9;
    if (std::abs(node.realtime_offset_ns) > kClockWarningNs) {
      result.warnings.push_back(fmt::format(
          "{}: its clock differs by {:+.1f} s; only printed times are affected", node.host, skew));
    }
  }
  if (by_path.size() < 2) return;
  std::vector<std::string> parts;
  for (const auto& [path, hosts] : by_path)
    parts.push_back(fmt::format("{} on {}", path, join_hosts(hosts)));
  result.warnings.push_back(
      fmt::format("the command is not the same on all nodes: {}", fmt::join(parts, "; ")));
}

// Two names may lead to one machine, which only shows when both have answered. Where a program of
// the user's leads to the agents (kubectl, docker), that may be meant.
void warn_of_one_machine(const std::vector<NodeHello>& nodes, PreflightResult& result) {
  std::map<std::pair<std::string, std::uint64_t>, std::vector<std::string>> names;
  for (const NodeHello& node : nodes) {
    const v1::HelloReply& reply = node.reply;
    if (!node.is_by_ssh || reply.boot_id().empty()) continue;
    names[{reply.boot_id(), reply.network_namespace()}].push_back(node.host);
  }
  for (const auto& [machine, hosts] : names) {
    if (hosts.size() < 2) continue;
    result.warnings.push_back(fmt::format(
        "{} are one machine: the ranks of each count from local rank 0, so that two may "
        "take the same GPU; name it once, with all its slots",
        fmt::join(hosts, " and ")));
  }
}

std::string limit_text(std::uint64_t limit) {
  return limit == kUnlimited ? "unlimited" : fmt::format("{}", limit);
}

// What the ranks get there: locked memory up to the hard limit (root without one), the caller's
// soft limits of open files and core as far as the hard ones allow.
std::string limits_text(const v1::HelloReply& reply, const RankLimits& limits) {
  const std::uint64_t wanted = limits.nofile == 0 ? kUnlimited : limits.nofile;
  return fmt::format(
      "memlock {}, nofile {} of {}, core {} of {}", limit_text(reply.memlock_hard()),
      limit_text(std::min(wanted, reply.nofile_hard())), limit_text(reply.nofile_hard()),
      limit_text(std::min(limits.core, reply.core_hard())), limit_text(reply.core_hard()));
}

std::string describe(const NodeHello& node, const RankLimits& limits) {
  const v1::HelloReply& reply = node.reply;
  return fmt::format("{}: {} {} {}, {} GPUs, command {}, agent {} (pid {}, {}), limits {}",
                     node.host, reply.hostname(), reply.machine(), reply.kernel(), reply.num_gpus(),
                     reply.executable(), reply.agent_path(), reply.pid(), reply.containment(),
                     limits_text(reply, limits));
}

// "cgroup FOLDER", or "descendants (why there is no cgroup)".
std::string containment_note(const NodeHello& node) {
  const std::string& layer = node.reply.containment();
  if (layer.starts_with("cgroup")) {
    return fmt::format("{}: processes are held by {}", node.host, layer);
  }
  const std::string why = layer.substr(std::min(layer.find(" ("), layer.size()));
  return fmt::format("{}: processes are held by the process tree and the job's mark{}", node.host,
                     why);
}

}  // namespace

Result<PreflightResult> check_hellos(const std::vector<NodeHello>& nodes, const std::string& cwd,
                                     const std::string& command, const RankLimits& limits) {
  Refusals refusals;
  check_cwd(nodes, cwd, refusals);
  check_command(nodes, command, refusals);
  if (!refusals.sentences.empty()) {
    return make_error(refusals.code, "{}", fmt::join(refusals.sentences, "\n"));
  }
  PreflightResult result;
  warn_of_differences(nodes, result);
  warn_of_one_machine(nodes, result);
  for (const NodeHello& node : nodes) result.notes.push_back(containment_note(node));
  for (const NodeHello& node : nodes) {
    result.details.push_back(describe(node, limits));
  }
  return result;
}

}  // namespace hvd
