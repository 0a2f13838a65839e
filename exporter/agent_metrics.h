// What the agent says, as metric families. A value that the agent does not know, or that is of
// another kind than it should be, is absent: 0 would be a claim. Pure.
#pragma once

#include <prometheus/metric_family.h>

#include <optional>
#include <string>
#include <vector>

namespace hvd {

// The JSON of `ctl status`, `ctl counters` and `ctl gpus`; nullopt: not answered.
struct AgentAnswers {
  std::optional<std::string> status;
  std::optional<std::string> counters;
  std::optional<std::string> gpus;
};

// hvdrun_agent_up is always there: 1 where status is JSON as it should be. No two samples of a
// family have the same labels.
[[nodiscard]] std::vector<prometheus::MetricFamily> metrics_of(const AgentAnswers& answers);

}  // namespace hvd
