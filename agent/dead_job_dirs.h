// Job folders that nobody will remove any more, because agent and shim of their job were killed.
// The next job of the same user takes them away. Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace hvd {

// The digits of the job id in the name that plan_job_dir() gives; empty: it is none. Pure.
[[nodiscard]] std::string_view job_digits(std::string_view name);

// How long ago the shim of the job's part on that node last gave a sign (folder_lock.h); nullopt:
// it has no folder here.
[[nodiscard]] std::optional<Nanos> since_sign_of(const std::vector<std::string>& parents,
                                                 std::string_view job_id, std::uint32_t node);

// Looks in `parents` (job_dir_parents()); only folders of ours that no agent and no shim holds.
// Jobs in `kept`, by their ids, still have processes: their folders stay, and so do younger ones
// than `age`.
void remove_dead_job_dirs(const std::vector<std::string>& parents,
                          const std::set<std::string>& kept, Nanos age = std::chrono::minutes(1));

}  // namespace hvd
