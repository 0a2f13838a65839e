// `hvd-agent job`: the agent of one job in a process of its own, started by an agent that serves,
// as the user whose job it is. The launcher's stream comes through a unix socket, again and again
// if a connection breaks, and is one stream all the same (proto/resumable_stream.h). Standard input
// is that socket, listening: it is the serving agent's, at a place that the job's user can neither
// see nor change.
//
// Whoever connects, root or our own user, says one line:
//   up             answered by "ok"
//   stream         the connection carries the launcher's stream from now on
//   stop REASON    the job is stopped, and the launcher told why; answered by "ok"
#pragma once

#include "agent/arguments.h"
#include "agent/cgroup_place.h"
#include "base/service_manager.h"

namespace hvd {

// The exit code for main: 0 once nothing of the job is left here.
[[nodiscard]] int run_job_agent(const AgentArguments& arguments, CgroupPlace place,
                                const ServiceManager& manager);

}  // namespace hvd
