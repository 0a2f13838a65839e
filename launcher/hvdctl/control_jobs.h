// The jobs of many nodes, told job by job. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "launcher/hvdctl/control_answer.h"

namespace hvd {

// What one of the nodes that were asked has said.
struct NodeReport {
  std::string name;  // as it was asked for
  Answer<NodeStatus> status;
};

struct JobPart {
  std::size_t report = 0;  // its place in the list of reports
  std::string node;        // the report's name
  JobStatus status;
};

struct ClusterJob {
  std::string id;
  std::vector<JobPart> parts;                // never empty; in the order of the job's own nodes
  [[nodiscard]] std::int64_t since() const;  // of the earliest part
};

// The longest running first. Nodes without an answer have no jobs.
[[nodiscard]] std::vector<ClusterJob> join_jobs(const std::vector<NodeReport>& reports);

// The shortest length of an id, at least 8, at which no two of these are the same.
[[nodiscard]] std::size_t shown_digits(const std::vector<ClusterJob>& jobs);

// At least 6 digits, all in lower case: what find_job() looks for. Usage errors.
[[nodiscard]] Result<void> check_job_word(std::string_view word);

// The one job whose id begins so; an error lists those among which it does not choose.
[[nodiscard]] Result<ClusterJob> find_job(const std::vector<ClusterJob>& jobs,
                                          std::string_view beginning);

}  // namespace hvd
