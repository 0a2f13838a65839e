// Where options come from beside the command line, and which source counts: the command line, then
// HVDRUN_... variables, then --config-file, then the user's file, then the system's. Of an option
// the strongest source that sets it counts alone; only -x adds up. Reads the files, keeps nothing.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "launcher/argv_scan.h"
#include "proto/worker_env.h"

namespace hvd {

// Files that may be absent; empty: not looked for.
struct ConfigPlaces {
  std::string system_file;
  std::string user_file;
};

// $XDG_CONFIG_HOME/hvdrun or ~/.config/hvdrun; empty: nobody says where home is.
[[nodiscard]] std::string user_config_folder(const EnvList& environment);

// /etc/hvdrun/config.yaml, and hvdrun/config.yaml below $XDG_CONFIG_HOME or ~/.config.
[[nodiscard]] ConfigPlaces default_config_places(const EnvList& environment);

// What the variables set, in the order of the option table; empty ones count as unset. Notes names
// that begin with HVDRUN_ and mean nothing, except inside another job.
[[nodiscard]] Result<std::vector<Occurrence>> settings_of_environment(
    const EnvList& environment, std::vector<std::string>& notes);

// `sources` from the weakest on; so is the result, for setters of which the last one counts. -H and
// --hostfile stand for one another, as do --gloo, --mpi and --jsrun, and --transport takes --rsh
// and --agent-running of weaker sources with it unless it is `command`.
[[nodiscard]] std::vector<Occurrence> merge_settings(
    const std::vector<std::vector<Occurrence>>& sources);

// All sources merged: `given` are those of the command line.
[[nodiscard]] Result<std::vector<Occurrence>> gather_settings(const std::vector<Occurrence>& given,
                                                              const EnvList& environment,
                                                              const ConfigPlaces& places,
                                                              std::vector<std::string>& notes);

}  // namespace hvd
