// Hello and Spawn -> what the shim starts: complete environments, absolute executable. Pure.
#pragma once

#include <string>
#include <vector>

#include "hvdrun/v1/agent.pb.h"
#include "hvdrun/v1/shim.pb.h"
#include "proto/worker_env.h"

namespace hvd {

// The environment of every worker before the job's own variables: node, launcher, -x.
[[nodiscard]] EnvList base_env(const EnvList& node_env, const hvdrun::v1::Hello& hello);

// Where one worker of this node leaves its last error (TORCHELASTIC_ERROR_FILE).
[[nodiscard]] std::string error_file(std::string_view job_dir, std::uint32_t rank);

struct SpawnContext {
  EnvList node_env;  // as the agent was given it
  hvdrun::v1::Hello hello;
  std::string executable;  // absolute
  std::string job_dir;
  std::string timeline_dir = {};  // empty: no timeline is wanted
};

// The agent adds what only it knows: HVDRUN_RENDEZVOUS, TORCHELASTIC_ERROR_FILE (unless -x names
// one), PWD and, where a timeline is wanted, HVDRUN_TIMELINE. Every
// worker's environment is complete, so many workers may need several frames: at least one part,
// never empty but for an empty spawn.
[[nodiscard]] std::vector<hvdrun::v1::ShimSpawn> make_shim_spawns(const SpawnContext& context,
                                                                  const hvdrun::v1::Spawn& spawn);

}  // namespace hvd
