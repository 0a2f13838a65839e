// hvdrun --dry-run: what would run where, from the command line alone. Pure; nothing is contacted.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "launcher/options.h"

namespace hvd {

// A row for each rank; a host whose slots are unknown has one row, its slots shown as GPUs, and
// ranks behind it are shown as '?'. More ranks than slots is the same error as in a real run. `cwd`
// is the folder the processes would start in. Values of variables are not shown: they may be
// secrets.
[[nodiscard]] Result<std::string> dry_run_text(const Options& options,
                                               const EnvList& launcher_environment,
                                               std::string_view cwd);

}  // namespace hvd
