// Finds the program that execve would get, as a shell does. Looks at the file system, starts
// nothing.
#pragma once

#include <string>
#include <string_view>

#include "proto/worker_env.h"

namespace hvd {

struct ExecutableLookup {
  std::string path;     // absolute; empty if there is none
  int errno_value = 0;  // 0, ENOENT, EACCES (there but not executable, or a folder), ...
};

// A name without a slash is looked for along `path` (PATH; empty entries are `cwd`), one with a
// slash stands for itself, against `cwd` if it is relative.
[[nodiscard]] ExecutableLookup find_executable(std::string_view name, std::string_view path,
                                               std::string_view cwd);
// The same along the PATH of this environment, or kDefaultPath if it has none.
[[nodiscard]] ExecutableLookup find_executable(std::string_view name, const EnvList& env,
                                               std::string_view cwd);

// PATH where nobody has set one.
inline constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

// Whether a process could chdir there: 0 or the errno.
[[nodiscard]] int check_folder(const std::string& path);

}  // namespace hvd
