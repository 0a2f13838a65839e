// What the kernel of a rank's node says about the rank's death: counters of out-of-memory kills in
// the exit report, and lines of the kernel's log. Pure. Lack of memory is only claimed where the
// kernel names the process, or the counter of a control group that was the rank's own has risen.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "hvdrun/v1/agent.pb.h"
#include "hvdrun/v1/types.pb.h"
#include "launcher/policy.h"
#include "proto/v1.h"

namespace hvd {

// The kernel's log of one node since the job's start, as far as it concerns the job.
class KernelNotes {
 public:
  static constexpr std::size_t kMaxFacts = 64;

  // `problem`: why the node's log proves nothing about a process; empty if it does.
  void begin(std::string problem);
  // Equal facts are kept once, more than kMaxFacts are dropped.
  void take(const hvdrun::v1::KernelFacts& facts);

  [[nodiscard]] bool is_read() const { return is_begun_ && problem_.empty(); }
  // The line that says that this process was killed for lack of memory; empty if there is none.
  [[nodiscard]] std::string out_of_memory_line(int pid) const;
  // Texts of the GPU driver's errors, in their order.
  [[nodiscard]] std::vector<std::string> xids() const;
  // All lines, in their order.
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  bool is_begun_ = false;
  std::string problem_;
  std::vector<hvdrun::v1::KernelFact> facts_;
};

// "oom_kill in memory.events of /hvdrun/w3 rose by 1", if that group was the rank's own; else
// empty.
[[nodiscard]] std::string oom_proof(const hvdrun::v1::OomFacts& facts);

// Completes the cause, a rank's of that node: its proof, or where none was found, and the xids.
void add_evidence(Cause& cause, const KernelNotes& notes);

}  // namespace hvd
