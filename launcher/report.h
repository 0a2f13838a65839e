// The last text of a failed job on stderr. Pure.
//
// Order: what the first failing rank wrote last, its traceback where it left one, the table of what
// does not fit together, what became of the other ranks, what could not be cleaned up, and as the
// very last line one sentence for the first cause: who reads only the end of a log reads that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hvdrun/v1/types.pb.h"
#include "launcher/policy.h"
#include "proto/v1.h"

namespace hvd {

struct NodeSurvivors {
  std::string host;
  std::vector<hvdrun::v1::Survivor> survivors;
};

struct ReportInput {
  Cause cause;
  JobClock clock;
  std::string job_id;
  std::vector<std::string> tail;       // last stderr lines of the cause's rank
  std::uint32_t num_stopped = 0;       // ranks that ended because hvdrun stopped them
  std::uint32_t num_failed_after = 0;  // ranks that failed by themselves after the cause
  std::vector<NodeSurvivors> survivors;
  std::vector<std::string> unconfirmed_hosts;  // nodes that never said that they are clean
  bool is_terminal = false;                    // control sequences of the workers are made visible
};

// Whole lines, each with its end.
[[nodiscard]] std::string report_text(const ReportInput& input);

// The traceback, or else the message, in a TORCHELASTIC_ERROR_FILE; empty if there is none.
[[nodiscard]] std::string traceback_in(std::string_view error_file);

}  // namespace hvd
