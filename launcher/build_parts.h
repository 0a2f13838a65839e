// Which parts of the project stand beside hvdrun, for --check-build. They are looked at and never
// loaded or run: the runtime brings libraries that hvdrun must not have, and libtorch takes
// seconds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/check_build.h"

namespace hvd {

// Of hvdrun's own folder, as in a build ("bin" beside "lib") or all in one. Other fields are left.
void find_build_parts(const std::string& folder, BuildInfo& build);

// The names of the libraries that a 64-bit ELF file needs ("libnccl.so.2"); none of another file.
[[nodiscard]] std::vector<std::string> needed_libraries(std::string_view file);

}  // namespace hvd
