// Where this node's cgroup of the job is made, and how an ordinary user gets a place for one: the
// user's systemd gives a scope whose cgroup is the user's (Delegate=yes), if the agent is started
// in it from the beginning; no later move leads there out of a login session.
//
// Lifecycle: once, first thing in main: the program may be replaced by itself inside a scope, with
// the same process id, environment and descriptors. Single-threaded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/arguments.h"
#include "base/status.h"

namespace hvd {

struct CgroupPlace {
  std::string parent;   // folder in which the job's cgroup can be made; empty: there is none
  std::string problem;  // why
};

// Looks at this process's own cgroup, or at --cgroup-root. With --user-scope, an ordinary user
// whose own is not writable asks for a scope; `argv` is what the program runs again with. If that
// fails, or takes longer than 2 s, the problem says so.
[[nodiscard]] CgroupPlace find_cgroup_place(const AgentArguments& arguments,
                                            const std::vector<std::string>& argv);

// "hvd-agent scope-check": whether a job's cgroup could be made here. 0 or 1, for main.
[[nodiscard]] int check_scope();

// Pure: the command that runs `program` in a scope of that name.
[[nodiscard]] std::vector<std::string> scope_command(const std::string& unit,
                                                     const std::vector<std::string>& program);

// Pure: the same words without the wish for a scope, so that the second life asks for none.
[[nodiscard]] std::vector<std::string> without_user_scope(const std::vector<std::string>& argv);

}  // namespace hvd
