// The options that are horovodrun's alone. Those that tune Horovod become variables of all workers,
// by one table; the others have no effect, which is noted, or are refused with what to use instead.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "launcher/options_table.h"
#include "proto/worker_env.h"

namespace hvd {

struct Occurrence;

// What becomes of an option's value on its way into the variable.
enum class Conversion {
  kMebibytes,  // a whole number, times 1048576
  kWhole,      // a whole number, not negative
  kDecimal,    // a number, not negative
  kFraction,   // a number from 0 to 1
  kFlag,       // 1, the opposite 0
  kOnlyIfSet,  // 1, the opposite takes the variable back
  kText,       // as it is
  kLevel,      // one of the option's choices, in capitals
};

struct Tunable {
  OptionId id;
  std::string_view variable;
  Conversion conversion;
};

// All options of the group kTuning.
[[nodiscard]] const std::vector<Tunable>& tunables();

// One option of that group: sets its variable, in place of an earlier value.
[[nodiscard]] Result<void> set_tunable(EnvList& variables, const Occurrence& it);

// When all are known: what belongs to --autotune goes without it, and notes tell what has no
// effect. `inherited`: what the workers have otherwise, for the limits of the stall check.
void finish_tunables(EnvList& variables, const EnvList& inherited, std::vector<std::string>& notes);

// One option of the group kForeign: accepted, noted or refused.
[[nodiscard]] Result<void> check_foreign(const Occurrence& it, std::vector<std::string>& notes);

}  // namespace hvd
