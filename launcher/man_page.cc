// hvdrun(1) in the man macros, from the option table and the manual's texts.
#include <fmt/format.h>

#include "launcher/manual.h"
#include "launcher/options.h"
#include "launcher/options_table.h"
#include "launcher/setting_names.h"
#include "proto/worker_env.h"

namespace hvd {
namespace {

// A leading dot or quote would be a request, a plain '-' a hyphen that cannot be pasted.
std::string escape(std::string_view text) {
  std::string result;
  if (!text.empty() && (text.front() == '.' || text.front() == '\'')) result += "\\&";
  for (const char c : text) {
    switch (c) {
      case '\\':
        result += "\\e";
        break;
      case '-':
        result += "\\-";
        break;
      case '\'':
        result += "\\(aq";
        break;
      default:
        result.push_back(c);
    }
  }
  return result;
}

std::string bold(std::string_view text) { return fmt::format("\\fB{}\\fR", escape(text)); }
std::string italic(std::string_view text) { return fmt::format("\\fI{}\\fR", escape(text)); }

std::string heading(const OptionSpec& option) {
  std::string result;
  for (const auto name : option.names) {
    if (!result.empty()) result += ", ";
    result += bold(name);
    if (option.takes_argument()) result += " " + italic(option.argument);
    if (option.is_argument_optional) result += "[=" + italic(option.argument) + "]";
  }
  return result;
}

std::string paragraph_with_term(std::string_view roff_term, std::string_view text) {
  return fmt::format(".TP\n{}\n{}\n", roff_term, escape(text));
}

std::string section_of_rows(std::string_view title, const std::vector<ManualRow>& rows) {
  std::string result = fmt::format(".SH {}\n", title);
  for (const ManualRow& row : rows) result += paragraph_with_term(bold(row.term), row.text);
  return result;
}

std::string section_of_options() {
  std::string result = ".SH OPTIONS\n";
  const OptionSpec* previous = nullptr;
  for (const OptionSpec& option : options_table()) {
    if (option.is_hidden) continue;
    if (previous == nullptr || previous->group != option.group) {
      result += fmt::format(".SS {}\n", escape(group_title(option.group)));
    }
    result += paragraph_with_term(heading(option), fmt::format("{}.", option.help));
    previous = &option;
  }
  return result;
}

std::string section_of_environment() {
  std::string result = ".SH ENVIRONMENT\n";
  result += ".PP\n" + escape(manual_of_variables()) + "\n";
  for (const OptionSpec& option : options_table()) {
    auto variables = variables_of(option);
    // Those of flags are Horovod's and reach the processes by themselves.
    if (!option.takes_argument()) {
      variables.insert(variables.end(), option.variables.begin(), option.variables.end());
    }
    if (variables.empty()) continue;
    std::string term;
    for (const std::string& name : variables) term += (term.empty() ? "" : ", ") + bold(name);
    result += paragraph_with_term(term, fmt::format("{}.", option.names.back()));
  }
  result +=
      ".PP\n" +
      escape(fmt::format(
          "Every process gets the node's environment; over it hvdrun's own, except what belongs "
          "to the person and the session ({}) and the rank variables "
          "of other launchers (--env-allow and --env-deny change what goes); over it --env-file; "
          "over it -x; "
          "over it these:",
          personal_names())) +
      "\n";
  for (const ManualRow& row : manual_worker_variables()) {
    result += paragraph_with_term(bold(row.term), fmt::format("{}.", row.text));
  }
  return result;
}

}  // namespace

std::string man_page() {
  std::string result =
      fmt::format(".TH HVDRUN 1 \"\" \"hvdrun {}\" \"User Commands\"\n", HVDRUN_VERSION);
  result += fmt::format(".SH NAME\nhvdrun \\- {}\n", escape(kSummary));
  result += fmt::format(".SH SYNOPSIS\n{}\n.br\n{} {}\n", escape(kSynopsis), bold("hvdrun"),
                        bold("--help"));
  result += ".SH DESCRIPTION\n";
  for (const auto text : manual_description()) result += fmt::format(".PP\n{}\n", escape(text));
  result += section_of_options();
  result += section_of_rows("EXIT STATUS", manual_exit_status());
  result += section_of_rows("FILES", manual_files());
  result += section_of_environment();
  result += section_of_rows("EXAMPLES", manual_examples());
  result += ".SH SEE ALSO\n" + bold("ssh_config") + "(5), " + bold("known_hosts") + "(5)\n";
  return result;
}

}  // namespace hvd
