// Where the hosts come from when neither -H nor --hostfile names them, and what --include and
// --exclude leave of them, wherever they come from.
#pragma once

#include <optional>
#include <string>

#include "launcher/options.h"

namespace hvd {

// The hosts of the scheduler whose allocation hvdrun runs in (allocation.h), with a note that says
// so; inside Slurm srun is then the transport, unless the user has chosen one. False: there is
// none. Looks at the scheduler's files.
[[nodiscard]] Result<bool> take_allocation(Options& options, const EnvList& environment);

// Also told in Options::hosts_source.
[[nodiscard]] Result<void> filter_hosts(Options& options, const std::optional<std::string>& include,
                                        const std::optional<std::string>& exclude);

}  // namespace hvd
