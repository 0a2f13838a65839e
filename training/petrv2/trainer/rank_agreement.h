// What the ranks tell each other beside their gradients, so that all of them do the same at the
// same step: that they have the same job, and with each step who wants to stop or save. Torch-free.
// Thread: the trainer's.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "hvdrun/communicator.h"
#include "training/petrv2/trainer/job_facts.h"

namespace hvd::petrv2 {

struct StepWishes {
  bool wants_stop = false;
  bool wants_save = false;
};

struct Agreement {
  StepWishes wishes;          // of any rank
  std::vector<double> means;  // over the ranks, of what each brought; empty if that was nothing
};

// What a rank tells with a step, as the numbers that ride with its gradients: the means over the
// ranks of these are an Agreement. `values`: num_values of them, or none; the same on all ranks.
[[nodiscard]] std::size_t num_riders(std::size_t num_values);
[[nodiscard]] std::vector<double> to_riders(const StepWishes& wishes,
                                            const std::vector<double>& values,
                                            std::size_t num_values);
[[nodiscard]] Agreement from_riders(std::span<const double> means);

class RankAgreement {
 public:
  // `communicator`: not owned, outlives this.
  RankAgreement(Communicator& communicator, std::chrono::milliseconds timeout)
      : communicator_(communicator), call_{timeout, nullptr} {}

  // The exchange alone, without a step: all ranks call it, each with values or each without.
  [[nodiscard]] Result<Agreement> agree(const std::vector<double>& values);

  // All ranks call it where each may have failed by itself. A rank that has gets its own error back
  // and leaves; its reason is the others' error.
  [[nodiscard]] Result<void> check_all_ready(const Result<void>& own);

  // All ranks must have the same facts; else the error is that of differences() (exit code 73).
  [[nodiscard]] Result<void> check_same_job(const JobFacts& own);

  // Rank 0's outcome of what it alone did, as everybody's: its error text, or none.
  [[nodiscard]] Result<void> share_outcome(const Result<void>& of_rank_zero);

  // Rank 0's text becomes everybody's.
  [[nodiscard]] Result<void> share_text(std::string& text);

 private:
  [[nodiscard]] Result<std::vector<std::string>> gather_texts(const std::string& own);

  Communicator& communicator_;
  const Call call_;
};

}  // namespace hvd::petrv2
