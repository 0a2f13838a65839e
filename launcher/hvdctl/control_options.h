// The command lines of `hvdctl nodes|jobs|kill|drain|undrain`. Errors are usage errors.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "launcher/hvdctl/control_call.h"
#include "proto/worker_env.h"

namespace hvd {

enum class ControlVerb { kNodes, kJobs, kKill, kDrain, kUndrain };

struct ControlOptions {
  ControlVerb verb = ControlVerb::kNodes;
  std::string hosts;  // -H; empty: not given, as all of these
  std::string hostfile;
  std::string socket;
  std::string tls_dir;
  std::uint16_t tls_port = 0;
  std::chrono::nanoseconds timeout = std::chrono::seconds(10);
  std::string reason;
  std::string job;  // of kKill: digits
  bool is_json = false;
  bool wants_help = false;
};

[[nodiscard]] bool is_control_verb(std::string_view word);

// `words`: the verb, and what stands behind it.
[[nodiscard]] Result<ControlOptions> parse_control(const std::vector<std::string>& words);

// What --help of one verb prints; "  nodes    ...", a line for each verb.
[[nodiscard]] std::string control_help(ControlVerb verb);
[[nodiscard]] std::string control_summary();

// Whom to ask, and where their certificates are looked for.
struct ControlTargets {
  std::vector<NodeAddress> nodes;  // never empty
  std::string socket;              // for a node without a host
  std::string tls_dir;             // empty where no node has a host
};

// Reads the hostfile, and for folder and port of TLS hvdrun's own variables and configuration files
// where the options do not say. Users, slots and GPUs in a host list do not count; a node that is
// named again is asked once.
[[nodiscard]] Result<ControlTargets> targets_of(const ControlOptions& options,
                                                const EnvList& environment);

}  // namespace hvd
