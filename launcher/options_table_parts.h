// The rows of options_table(), group by group; each file of them is a subject.
#pragma once

#include <vector>

#include "launcher/options_table.h"

namespace hvd {

// options_table_nodes.cc
[[nodiscard]] std::vector<OptionSpec> host_options();
[[nodiscard]] std::vector<OptionSpec> node_options();
[[nodiscard]] std::vector<OptionSpec> network_options();
// options_table_run.cc
[[nodiscard]] std::vector<OptionSpec> time_options();
[[nodiscard]] std::vector<OptionSpec> signal_options();
[[nodiscard]] std::vector<OptionSpec> hang_options();
[[nodiscard]] std::vector<OptionSpec> restart_options();
// options_table_environment.cc
[[nodiscard]] std::vector<OptionSpec> environment_options();
// options_table_output.cc
[[nodiscard]] std::vector<OptionSpec> output_options();
// options_table_told.cc
[[nodiscard]] std::vector<OptionSpec> timeline_options();
[[nodiscard]] std::vector<OptionSpec> record_options();
[[nodiscard]] std::vector<OptionSpec> information_options();
// options_table_horovod.cc
[[nodiscard]] std::vector<OptionSpec> tuning_options();   // become variables of Horovod's
[[nodiscard]] std::vector<OptionSpec> foreign_options();  // horovodrun's: no effect, or refused
[[nodiscard]] std::vector<OptionSpec> configuration_options();

}  // namespace hvd
