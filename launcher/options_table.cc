#include "launcher/options_table.h"

#include <fmt/format.h>

#include "launcher/options_table_parts.h"

namespace hvd {
namespace {

std::vector<OptionSpec> build_table() {
  std::vector<OptionSpec> table;
  for (auto* rows : {host_options, time_options, signal_options, hang_options, restart_options,
                     environment_options, node_options, network_options, timeline_options,
                     record_options, output_options, tuning_options, foreign_options,
                     configuration_options, information_options}) {
    for (OptionSpec& row : rows()) table.push_back(std::move(row));
  }
  return table;
}

}  // namespace

std::string_view group_title(OptionGroup group) {
  switch (group) {
    case OptionGroup::kHosts:
      return "Hosts and ranks";
    case OptionGroup::kTime:
      return "Time limits";
    case OptionGroup::kSignals:
      return "Signals and standard input";
    case OptionGroup::kHangs:
      return "Processes that hang, and GPUs";
    case OptionGroup::kRestarts:
      return "Restarts";
    case OptionGroup::kEnvironment:
      return "Environment of the processes";
    case OptionGroup::kNodes:
      return "Reaching the nodes";
    case OptionGroup::kNetwork:
      return "Network between the ranks";
    case OptionGroup::kTimeline:
      return "Timeline";
    case OptionGroup::kRecords:
      return "Records of the run";
    case OptionGroup::kOutput:
      return "Output of the processes";
    case OptionGroup::kTuning:
      return "Tuning of Horovod programs";
    case OptionGroup::kForeign:
      return "Options of horovodrun that have no effect or are refused";
    case OptionGroup::kConfiguration:
      return "Configuration";
    case OptionGroup::kInformation:
      return "Information";
  }
  return "";
}

const std::vector<OptionSpec>& options_table() {
  static const std::vector<OptionSpec> table = build_table();
  return table;
}

bool is_short_name(std::string_view name) { return name.size() == 2 && name[1] != '-'; }

std::string_view bare_name(std::string_view name) {
  name.remove_prefix(name.substr(0, 2) == "--" ? 2 : 1);
  return name;
}

std::string option_heading(const OptionSpec& option) {
  std::string result;
  for (const auto name : option.names) {
    if (!result.empty()) result += ", ";
    result += name;
    if (option.takes_argument()) result += fmt::format(" {}", option.argument);
    if (option.is_argument_optional) result += fmt::format("[={}]", option.argument);
  }
  return result;
}

std::string option_description(const OptionSpec& option) {
  if (option.variables.empty()) return std::string(option.help);
  return fmt::format("{} [env: {}]", option.help, fmt::join(option.variables, ", "));
}

}  // namespace hvd
