// What the kernel lets a process be given: words of a command and variables. Pure. A command that
// cannot be executed for that is refused before anything is started, with the largest named.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "proto/worker_env.h"

namespace hvd {

// One word, or NAME=VALUE, with its end (MAX_ARG_STRLEN: 32 pages).
inline constexpr std::uint64_t kMostStringBytes = 131072;
// All together, whatever the limit of the stack is.
inline constexpr std::uint64_t kMostExecBytes = 6291456;

// All together under this soft RLIMIT_STACK (UINT64_MAX: unlimited): a quarter of it, 128 KiB to
// 6 MiB.
[[nodiscard]] std::uint64_t exec_limit(std::uint64_t stack_limit);

// Exit 2 if a process can certainly not be given `command` and `environment` (later lines win).
// `where`: "node1: ", for the sentence; empty: it holds for every node.
[[nodiscard]] Result<void> check_exec_size(const std::vector<std::string>& command,
                                           const EnvList& environment,
                                           std::uint64_t limit = kMostExecBytes,
                                           std::string_view where = {});

// "PATHS 1.2 MiB, B 40.0 KiB, C 312 bytes": the three largest variables, without their values.
[[nodiscard]] std::string largest_variables(const EnvList& environment);

}  // namespace hvd
