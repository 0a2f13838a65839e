// The environment of the ranks: what -vv tells of it, whether it fits, and what to say when it did
// not or somebody else held the port that it names.
#include <cerrno>

#include "base/log.h"
#include "launcher/env_size.h"
#include "launcher/env_text.h"
#include "launcher/job.h"

namespace hvd {

void Job::tell_environment() const {
  if (options_.verbosity < 2) return;
  for (const std::string& line :
       environment_lines(environment_, options_.env_request.rules, options_.env)) {
    log(LogLevel::kDebug, "{}", line);
  }
}

// What travels from here; the node's own, which the ranks get below it, is not known.
EnvList Job::sent_env() const {
  const EnvList forwarded = filter_launcher_env(environment_, options_.env_request.rules);
  return merge_env({&forwarded, &options_.env}, {});
}

// The choice in force: what the user has set is passed on as it is.
void Job::tell_interfaces(const Node& node) const {
  if (options_.verbosity < 2) return;
  const EnvList ours =
      node_env_if_unset(static_cast<std::uint32_t>(node.ranks.size()),
                        static_cast<std::uint32_t>(plan_->nodes.size()), node.fabric.interface);
  const EnvList sent = sent_env();
  for (const char* name : {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"}) {
    const auto users = find_env(sent, name);
    const auto value = users ? users : find_env(ours, name);
    if (!value) continue;
    log(LogLevel::kDebug, "{}: {}={}{}", node.host.label(), name, *value,
        users ? " (the user's)" : " (unless the node sets it)");
  }
}

// Nodes whose limit is lower than the kernel's own.
Result<void> Job::check_exec_sizes() const {
  const EnvList sent = sent_env();
  for (const auto& node : nodes_) {
    const std::uint64_t stack = node->hello->stack_limit();
    if (stack == 0) continue;
    auto fits = check_exec_size(options_.command, sent, exec_limit(stack),
                                fmt::format("{}: ", node->host.label()));
    if (!fits) return fits;
  }
  return {};
}

void Job::explain(Cause& cause, const v1::ExitReport& report) const {
  if (cause.kind == CauseKind::kFailedToStart && cause.value == E2BIG) {
    cause.details.push_back(fmt::format(
        "COMMAND and the variables for it are more than a process can be given there (a quarter of "
        "the node's stack limit, see ulimit -s, and 128 KiB in one); hvdrun's largest: {}; leave "
        "what the ranks do not need at home with --env-deny NAME",
        largest_variables(sent_env())));
  }
  if (report.port_holder().empty()) return;
  cause.details.push_back(fmt::format(
      "MASTER_PORT {}:{}, on which rank 0 is to listen, was held by {}; end that, or take another "
      "port with --master-port",
      master_addr_, master_port_, report.port_holder()));
}

}  // namespace hvd
