// A file that hvdrun will write when its job has ended: that it can be written is found out before
// anything is started.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace hvd {

// The absolute path of `text`, links followed; relative means hvdrun's own working directory. Only
// a regular file, and none into which hvdrun's own output goes. Makes a file without a name in the
// folder, because rights alone do not tell. `name` is the option's or the variable's, for the
// message.
[[nodiscard]] Result<std::string> check_output_file(std::string_view text, std::string_view name);

}  // namespace hvd
