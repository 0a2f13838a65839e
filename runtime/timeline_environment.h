// Whether this worker shall write a timeline, and where: what hvdrun or the user has put into the
// environment. Pure.
//
//   HVDRUN_TIMELINE            a folder, by hvdrun --timeline-filename: the file is rank<r>.json in
//   it HVDRUN_TIMELINE_STEPS      "A-B", both inclusive; "A" for one step HVDRUN_TIMELINE_MAX_BYTES
//   of the file HOROVOD_TIMELINE           without hvdrun: FILE, of which FILE.rank<r>.json is
//   made; DYNAMIC: none HOROVOD_TIMELINE_MARK_CYCLES  not 0: CYCLE_START at each step
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/status.h"
#include "runtime/timeline.h"

namespace hvd {

// The value of a variable; nullopt or empty: not set.
using VariableLookup = std::function<std::optional<std::string>(const char* name)>;

// nullopt: no timeline. An error names the variable that makes no sense.
[[nodiscard]] Result<std::optional<TimelineOptions>> timeline_from_environment(
    int rank, std::string host, const VariableLookup& variable);

// With the process's own environment.
[[nodiscard]] Result<std::optional<TimelineOptions>> timeline_from_environment(int rank,
                                                                               std::string host);

}  // namespace hvd
