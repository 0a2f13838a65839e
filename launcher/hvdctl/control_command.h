// `hvdctl nodes|jobs|kill|drain|undrain`: asks agents that serve, and tells what they say.
#pragma once

#include <string>
#include <vector>

#include "base/loop.h"
#include "launcher/hvdctl/control_options.h"
#include "proto/worker_env.h"

namespace hvd {

struct ControlOutcome {
  std::string out;  // for standard output, whole lines
  std::string err;  // for standard error, one line for each node or mistake
  int code = 0;     // 1: a node could not be asked, or refused; 2: usage
};

// `words`: a verb (is_control_verb) and what stands behind it. `now`: seconds since 1970.
[[nodiscard]] ControlOutcome run_control(Loop& loop, const std::vector<std::string>& words,
                                         const EnvList& environment, std::int64_t now);

}  // namespace hvd
