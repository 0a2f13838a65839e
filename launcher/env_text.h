// Variables as they may be shown to a person: never the value of a secret. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proto/worker_env.h"

namespace hvd {

// By its name: TOKEN, SECRET, PASSWORD, PASSPHRASE, KEY, CREDENTIAL, AUTH, COOKIE, PRIVATE or
// SIGNATURE stands in it, in any case.
[[nodiscard]] bool is_secret_name(std::string_view name);

// "NAME=value"; "NAME=(hidden)" for a secret's name and for a value with a password in a URL. Long
// values are cut.
[[nodiscard]] std::string shown_variable(std::string_view name, std::string_view value);

// What -vv tells of the environment: names of what travels and of what rules keep at home, and what
// the user has given. One line each.
[[nodiscard]] std::vector<std::string> environment_lines(const EnvList& launcher_environment,
                                                         const std::vector<EnvRule>& rules,
                                                         const EnvList& user_env);

}  // namespace hvd
