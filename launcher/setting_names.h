// The names under which options are set without a command line: a key in a configuration file, a
// HVDRUN_... variable. Both come from the option table; what else begins with HVDRUN_ and is no
// option's is known here. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "launcher/argv_scan.h"
#include "launcher/options_table.h"

namespace hvd {

// "HVDRUN_ACCEPT_NEW_HOST_KEYS"; empty: no variable gives this option's default.
[[nodiscard]] std::string variable_of(const OptionSpec& option);

// variable_of() and the option's other variables, in the order in which the first that is set
// counts. Those of others that take no argument reach the workers by themselves.
[[nodiscard]] std::vector<std::string> variables_of(const OptionSpec& option);

// "accept_new_host_keys", and each other long name; empty: the option has no place in a file.
[[nodiscard]] std::vector<std::string> keys_of(const OptionSpec& option);

struct KeyedOption {
  const OptionSpec* spec = nullptr;  // of the static table
  bool is_opposite = false;          // the key is that of its "--no-..."
};
// `key` with '_' or '-'.
[[nodiscard]] std::optional<KeyedOption> find_key(std::string_view key);

// Variables that hvdrun or its agents give to workers, or that other programs of the project and
// its tests read: a hvdrun that is started inside another job finds them and takes none for an
// option.
[[nodiscard]] bool is_variable_of_workers(std::string_view name);

// What `text` means for the option. One without an argument is set by true, yes, on or 1 and taken
// back by false, no, off or 0; --verbose also takes 2.
[[nodiscard]] Result<std::vector<Occurrence>> settings_from(const KeyedOption& option,
                                                            const std::string& text,
                                                            const std::string& source);

}  // namespace hvd
