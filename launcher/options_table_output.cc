#include "launcher/options_table_parts.h"

namespace hvd {

std::vector<OptionSpec> output_options() {
  return {
      {.id = OptionId::kOutputFilename,
       .group = OptionGroup::kOutput,
       .names = {"--output-filename"},
       .argument = "DIR",
       .help = "Write what each process prints to DIR/rank.N/stdout and DIR/rank.N/stderr on this "
               "machine as well, byte for byte; files of an earlier job are replaced",
       .is_file = true},
      {.id = OptionId::kPrefixTimestamp,
       .group = OptionGroup::kOutput,
       .names = {"-prefix-timestamp", "--prefix-output-with-timestamp"},
       .argument = "",
       .help = "Put the time before each line of output"},
      {.id = OptionId::kNoTagOutput,
       .group = OptionGroup::kOutput,
       .names = {"--no-tag-output"},
       .argument = "",
       .help = "Leave out the [rank]<stdout>: before each line of output",
       .opposite = "--tag-output"},
  };
}

std::vector<OptionSpec> configuration_options() {
  return {
      {.id = OptionId::kConfigFile,
       .group = OptionGroup::kConfiguration,
       .names = {"--config-file"},
       .argument = "FILE",
       .help = "Options from a YAML file, as horovodrun's or by hvdrun's own names; those of the "
               "command line and of HVDRUN_... variables come first",
       .is_file = true},
      {.id = OptionId::kShowConfig,
       .group = OptionGroup::kConfiguration,
       .names = {"--show-config"},
       .argument = "",
       .help = "Print each option's value and where it comes from, contact nothing, start nothing",
       .is_per_run = true},
  };
}

}  // namespace hvd
