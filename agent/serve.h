// `hvd-agent serve`: sets this process up as an agent that stays, and runs it until SIGTERM, SIGINT
// or SIGHUP. What concerns the whole process and not one job is here: the sub-reaper, limits,
// signals, the log on standard error.
#pragma once

#include "agent/arguments.h"
#include "agent/cgroup_place.h"
#include "base/service_manager.h"

namespace hvd {

// The exit code for main: 0 after a signal, when all jobs have been ended.
// Whether the configuration and its certificates are right, in the log if not: 0 or 2.
[[nodiscard]] int check_service(const AgentArguments& arguments);

[[nodiscard]] int run_service(const AgentArguments& arguments, CgroupPlace cgroup,
                              ServiceManager manager);

}  // namespace hvd
