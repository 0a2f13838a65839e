// The last text of a failed job on stderr. Pure.
//
// Order: what the first failing rank wrote last, its traceback where it left one, the table of what
// does not fit together, what the kernel said, what became of the other ranks, what could not be
// cleaned up, and as the very last line one sentence for the first cause: who reads only the end of
// a log reads that.
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

struct UnverifiedNode {
  std::string host;
  std::string why;  // empty: it was not lost, but never said that it had finished
};

struct KernelLine {
  std::string host;
  std::string text;
};

// A rank that a signal had stopped when the job was ended: the others may have waited for it.
struct StillRank {
  std::uint32_t rank = 0;
  std::string host;
  std::int32_t pid = 0;
};

struct ReportInput {
  Cause cause;
  JobClock clock;
  std::string job_id;
  std::vector<std::string> tail;       // last stderr lines of the cause's rank
  std::vector<KernelLine> kernel_log;  // kills for lack of memory and GPU errors since the start
  std::vector<StillRank> stood_still;
  std::uint32_t num_stopped = 0;       // ranks that ended because hvdrun stopped them
  std::uint32_t num_failed_after = 0;  // ranks that failed by themselves after the cause
  std::vector<NodeSurvivors> survivors;
  std::vector<UnverifiedNode> unverified;  // nodes of which nobody knows whether they are clean
  std::vector<std::string> node_lines;     // "node2: verified clean", "node2: GPU 3 still holds .."
};

// Whole lines, each with its end.
[[nodiscard]] std::string report_text(const ReportInput& input);

// Of it only what became of the nodes: also a job without a failure can leave something behind.
[[nodiscard]] std::string node_ends_text(const ReportInput& input);

}  // namespace hvd
