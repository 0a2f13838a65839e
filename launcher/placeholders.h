// Words of a command in which "{name}" is replaced for each rank or host: what the user may have
// meant as one and is none. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hvd {

// An error of usage that names `option` and the known ones, as in "{pid}", for the first "{name}"
// of lower-case letters, "_" and "-" that is none of them. "${name}" is a shell's and passes.
[[nodiscard]] Result<void> check_placeholders(const std::vector<std::string>& words,
                                              const std::vector<std::string_view>& known,
                                              std::string_view option);

}  // namespace hvd
