// hvdrun --show-config: each option's value and where it comes from. Pure.
#pragma once

#include <string>

#include "launcher/options.h"

namespace hvd {

// One line an option: its name, its value, "command line", "HVDRUN_GRACE", "FILE:LINE" or
// "default". Of variables for the processes only the names, their values may be secret.
[[nodiscard]] std::string show_config_text(const Options& options);

// "120s": what the option's help says behind "default: "; "off" where there is nothing.
[[nodiscard]] std::string default_text(const OptionSpec& option);

}  // namespace hvd
