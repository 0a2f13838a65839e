// What can be judged only when all options are known, because it lies between two of them: errors
// of usage, and notes on options that have no effect. Pure.
#pragma once

#include "base/status.h"
#include "launcher/argv_scan.h"
#include "launcher/options.h"
#include "proto/worker_env.h"

namespace hvd {

// --spare needs --max-restarts, which cannot go with --stdin: that can be read only once.
[[nodiscard]] Result<void> check_restarts(const Options& options);

// Whether COMMAND and the variables of hvdrun and the user can be given to a process at all.
[[nodiscard]] Result<void> check_size(const Options& options, const EnvList& environment);

// GPUs of a host are selected in one place only.
[[nodiscard]] Result<void> check_gpu_selection(const Options& options);

// --on-stall needs something that ends a job that hangs: one of two options, or the runtime's
// limit, which may come from `environment`, our own, or by -x.
[[nodiscard]] Result<void> check_hook_occasion(const Options& options, const EnvList& environment);

// --rsh and --agent-running belong to --transport command, which needs a program.
[[nodiscard]] Result<void> check_transport(const Options& options);

// --tls-dir belongs to --transport tls, whose files must be there. Looks at them.
[[nodiscard]] Result<void> check_tls(const Options& options);

// Of a user's folder for TLS: key, certificate and authority can be read.
[[nodiscard]] Result<void> check_user_files(const std::string& folder);

// Options about ssh where no host and no spare is reached by it.
void note_unused_ssh_options(Options& options, const ArgvScan& scan);

}  // namespace hvd
