// What the nodes' hellos say about whether the job can start: versions, working directory, command,
// clocks, limits. Pure. Nothing has been started when it refuses.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "hvdrun/v1/agent.pb.h"
#include "proto/v1.h"

namespace hvd {

struct NodeHello {
  std::string host;
  v1::HelloReply reply;
  std::int64_t realtime_offset_ns = 0;  // node's wall clock minus the launcher's, at the hello
  bool is_by_ssh = false;
};

// What the ranks' limits are made of beside the node's hard ones: those of hvdrun's caller.
struct RankLimits {
  std::uint64_t nofile = 0;  // soft; 0: the hard one
  std::uint64_t core = 0;    // soft; UINT64_MAX: unlimited
};

struct PreflightResult {
  std::vector<std::string> warnings;
  std::vector<std::string> notes;    // for -v: what holds the processes of each node
  std::vector<std::string> details;  // for -vv: resolved command, agent, limits of each node
};

// `cwd` and `command` are for the sentences. All nodes that refuse are named in one error; its code
// is 127 (not found), 126 (not executable) or 125 (working directory, version).
[[nodiscard]] Result<PreflightResult> check_hellos(const std::vector<NodeHello>& nodes,
                                                   const std::string& cwd,
                                                   const std::string& command,
                                                   const RankLimits& limits = {});

}  // namespace hvd
