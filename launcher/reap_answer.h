// What `hvd-agent reap` on a node that was lost is asked, and what it answers. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "hvdrun/v1/types.pb.h"
#include "proto/v1.h"

namespace hvd {

// Whose agent this is, and where the job's cgroup is to be: words for every start of an agent.
// `cgroup_root` as HVDRUN_CGROUP_ROOT has it: a folder, "none", or empty. What is no plain word is
// left out. `is_remote`: a login session of the job's own holds the agent, so that its user's
// systemd, which ends with the last session, may be asked for a cgroup.
[[nodiscard]] std::vector<std::string> agent_words(std::string_view job_id, std::uint32_t node,
                                                   std::string_view cgroup_root, bool is_remote);

// The same agent's words for a reap. `job_dir` as its hello told it.
[[nodiscard]] std::vector<std::string> reap_words(std::vector<std::string> agent_words, Nanos grace,
                                                  std::string_view job_dir);

// Its one line of JSON, whatever stands around it; an error if there is none for this job and node.
[[nodiscard]] Result<v1::Finished> parse_reap_answer(std::string_view output,
                                                     std::string_view job_id, std::uint32_t node);

}  // namespace hvd
