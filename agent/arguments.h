// The words that the launcher gives hvd-agent. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace hvd {

struct AgentArguments {
  // On the stream that reached the node; a look at a lost job; for all who come to a socket; of one
  // job, for an agent that serves.
  enum class Role { kServe, kReap, kListen, kJob };
  Role role = Role::kServe;
  std::string marker;  // first word of the ready line; empty: no such line (reap only)
  // Whose agent this is. On the command line, so that a later look at the node can tell.
  std::string job_id;
  std::optional<std::uint32_t> node;
  std::string cgroup_root;        // folder for the job's cgroup; empty: our own; "none": no cgroup
  bool wants_user_scope = false;  // may ask the user's systemd for a cgroup
  bool is_check = false;          // listen: only look whether the configuration is right
  bool is_unit = false;           // job: a unit of systemd, whose output belongs to the journal
  Nanos grace{};                  // reap: how long agent and shim may still end by themselves
  std::string job_dir;            // reap: the job's folder, removed at the end
  std::string socket;             // listen: its absolute path
  std::string config_file;        // listen: instead of it
};

// `words` without the program's name.
[[nodiscard]] Result<AgentArguments> parse_arguments(const std::vector<std::string_view>& words);

// The job ids that hvdrun makes: 32 hexadecimal digits. Anything else stands in no path and no
// name.
[[nodiscard]] bool is_job_id(std::string_view text);

}  // namespace hvd
