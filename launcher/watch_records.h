// What --events and --report tell of ranks that hang and of GPUs (docs/report.md). Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "launcher/evidence.h"
#include "launcher/gpu_stats.h"
#include "launcher/policy.h"

namespace hvd {

// The cause without what was found: rank, pid and host of the one to blame, the sentence.
[[nodiscard]] nlohmann::ordered_json stall_json(const Cause& cause,
                                                const std::vector<std::uint32_t>& hung);

// The same with all that was found of each rank. `command`: of --on-stall; empty: the kernel's
// view.
[[nodiscard]] nlohmann::ordered_json stall_json(const Cause& cause,
                                                const std::vector<std::uint32_t>& hung,
                                                const std::string& command,
                                                const std::vector<RankEvidence>& evidence);

// Of each GPU what it does now.
[[nodiscard]] nlohmann::ordered_json gpu_now_json(const GpuStats& stats);

// Of each GPU lowest and mean over the run.
[[nodiscard]] nlohmann::ordered_json gpu_run_json(const GpuStats& stats);

// As text, whatever bytes are in it.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& json);

}  // namespace hvd
