// The entries that a launcher wants staged, checked before any of them is made: nothing may stand
// outside the workers' folder, or be reached through a link. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hvdrun/v1/stage.pb.h"

namespace hvd {

// Why they cannot be staged; nullopt: they can. Every path is relative, plain ("a/b", without empty
// parts, "." and ".."), stands once, and its folder comes before it.
[[nodiscard]] std::optional<std::string> check_stage_entries(
    const std::vector<hvdrun::v1::StageEntry>& entries);

}  // namespace hvd
