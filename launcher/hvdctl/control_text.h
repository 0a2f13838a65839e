// What hvdctl prints of the nodes' answers: tables for people, JSON for programs. Nothing that a
// node says reaches a terminal as it is: controls, colours and broken UTF-8 become visible. Pure,
// but for the local time zone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/hvdctl/control_jobs.h"

namespace hvd {

// Of a node's words, for one line: as base/shown.h does it; very long ones are cut.
[[nodiscard]] std::string shown_cut(std::string_view text);

// "unreachable: WHY", "refused: WHY", "faulty: WHY".
[[nodiscard]] std::string failure_text(const ControlFailure& failure);

// Whole lines. `now`: seconds since 1970.
[[nodiscard]] std::string nodes_table(const std::vector<NodeReport>& reports);
[[nodiscard]] std::string jobs_table(const std::vector<ClusterJob>& jobs, std::int64_t now);

// {"nodes":[{"name","state":"ok"|"draining"|"unreachable"|"refused"|"faulty","reason",
//   "version","started","jobs","max_jobs","gpus"}]}; the last five only of nodes that answered.
[[nodiscard]] std::string nodes_json(const std::vector<NodeReport>& reports);

// {"jobs":[{"job","user","client","from","since","nodes":[{"node","index","state","gpus","unit"}]}],
//  "errors":[{"name","error"}]}. What the nodes of a job do not say alike is told of the first.
[[nodiscard]] std::string jobs_json(const std::vector<ClusterJob>& jobs,
                                    const std::vector<NodeReport>& reports);

}  // namespace hvd
