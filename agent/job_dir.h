// The job's own folder on this node: fresh, 0700, below $XDG_RUNTIME_DIR/hvdrun,
// /tmp/hvdrun-UID or /var/tmp/hvdrun-UID.
// It holds the rendezvous socket and the workers' error files and lives as long as the job.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hvd {

// Where job folders may stand, best first. `runtime_dir` is XDG_RUNTIME_DIR, or empty. Looks into
// /tmp for others of ours (make_other_parent()) where somebody else has the names in /tmp.
[[nodiscard]] std::vector<std::string> job_dir_parents(std::string_view runtime_dir, uid_t uid);

// Where somebody else has these names: a new folder in /tmp with a name that nobody can guess.
// Empty: nobody has, or none can be made.
[[nodiscard]] std::string make_other_parent(uid_t uid);

// Digits of the job id, and of a random number, in the name of a job folder.
inline constexpr std::size_t kJobDirDigits = 8;

// A fresh path below the first parent that is ours alone (and is made if missing); the name holds
// the job id's first 8 digits and the node index. A parent that is a link, another's, or open to
// others is refused. The folder itself is not made yet: first the shim is told, which removes it at
// the end, so that no death of the agent leaves it behind.
[[nodiscard]] Result<std::string> plan_job_dir(const std::vector<std::string>& parents,
                                               std::string_view job_id, unsigned node);

[[nodiscard]] Result<void> make_job_dir(const std::string& path);

// Where folders of timelines may stand, best first: on disk, because they may be large, and where
// they stay when the user's last session on the node has ended. Pure.
[[nodiscard]] std::vector<std::string> timeline_dir_parents(uid_t uid);

// As plan_job_dir(), but the path follows from the job, so that one line can tell it for all nodes.
[[nodiscard]] Result<std::string> plan_timeline_dir(const std::vector<std::string>& parents,
                                                    std::string_view job_id, unsigned node);

// Where files stay that were staged for jobs of this user, for those to come: a folder below the
// first of timeline_dir_parents() that is ours alone; empty: nowhere. Not made yet.
[[nodiscard]] std::string stage_cache_dir(const std::vector<std::string>& parents);

// The workers' folder of a job with staged files, in the job folder.
[[nodiscard]] std::string staged_path(std::string_view job_dir);

// The rendezvous socket in a job folder.
[[nodiscard]] std::string rendezvous_path(std::string_view job_dir);

}  // namespace hvd
