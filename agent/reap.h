// `hvd-agent reap`: comes to a node over a new connection after the job's agent, or the way to it,
// was lost. Agent and shim that still live get their time to end the job themselves; then they, and
// whatever else is left of this job on this node, are killed, and one line of JSON says whether
// that is proved.
//
// Lifecycle: once, as the whole of a process. Thread: one.
#pragma once

#include <string>
#include <vector>

#include "agent/arguments.h"
#include "hvdrun/v1/types.pb.h"

namespace hvd {

struct ReapResult {
  bool is_clean = false;
  std::uint32_t num_killed = 0;
  std::vector<hvdrun::v1::Survivor> survivors;
  std::string doubt{};  // why it is not proved although nobody was found; empty: it is
};

// {"job":..,"node":..,"clean":..,"killed":..,"doubt":..,"survivors":[{"pid":..,"uid":..,"state":..,"wchan":..,
// "command":..,"ports":[..]}]} without a line end. Pure.
[[nodiscard]] std::string reap_line(const AgentArguments& arguments, const ReapResult& result);

// The job's folders on this node below `parents`, for whoever was not told its path.
[[nodiscard]] std::vector<std::string> job_dirs_of(const std::vector<std::string>& parents,
                                                   std::string_view job_id, std::uint32_t node);

// Whether this folder is the job's on this node, by its name and the folder it stands in. Pure.
[[nodiscard]] bool is_job_dir_of(std::string_view path, std::string_view job_id,
                                 std::uint32_t node);

// The exit code for main: 0 if the node is proved clean, else 1.
[[nodiscard]] int run_reap(const AgentArguments& arguments);

}  // namespace hvd
