// Do all ranks synchronise the same tensors with the same settings? Ranks that differ would wait
// for each other for ever, or add up what does not belong together; here every rank gets the same
// error, which says what differs.
//
// compare_plans() is pure; check_plan() blocks its caller for its collectives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "hvdrun/communicator.h"

namespace hvd {

struct PlanLine {
  enum class Kind : std::uint8_t {
    kProblem,  // text: one sentence, why this rank cannot take part
    kSetting,  // "compression", "fp16"
    kTensor,   // "head.cls.0.weight", "float32 [256, 256] on cuda"
  };
  Kind kind = Kind::kTensor;
  std::string name;  // unique within its kind
  std::string text;
};
using Plan = std::vector<PlanLine>;

// One plan for each rank, lines in any order. An error (exit code 73) that names the tensor or
// setting, the ranks, and what each has; of several differences the first by name.
[[nodiscard]] Result<void> compare_plans(const std::vector<Plan>& of_ranks);

// All ranks call it. Costs one exchange of 8 bytes if all agree.
[[nodiscard]] Result<void> check_plan(Plan own, Communicator& communicator, const Call& call);

}  // namespace hvd
