// Files of --env-file: variables for the processes, one NAME=VALUE a line. Pure; an error is exit 2
// and names file and line, never a value, which may be a secret.
//
// A line whose first character is '#' and an empty one say nothing; `export ` may stand before the
// name; NAME alone takes hvdrun's own value. A value ends with its line and has no blanks around
// it;
// '#' behind a blank begins a comment. In 'single' quotes everything is the value, line ends too;
// in "double" quotes \n, \r, \t, \", \\ and \$ are the characters that they stand for. Nothing is
// expanded: $NAME stays as it is. The last line for a name counts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "proto/worker_env.h"

namespace hvd {

// `own` gives the values of names alone; those that it lacks are left out and told in `notes`.
[[nodiscard]] Result<EnvList> parse_env_file(std::string_view text, std::string_view path,
                                             const EnvList& own, std::vector<std::string>& notes);

// Letters, digits and '_', not beginning with a digit.
[[nodiscard]] bool is_variable_name(std::string_view name);

// Whether the value names its own variable, as in L=/opt/x:$L, which somebody may expect to be
// expanded.
[[nodiscard]] bool mentions_itself(std::string_view name, std::string_view value);
[[nodiscard]] std::string literal_note(std::string_view name);

}  // namespace hvd
