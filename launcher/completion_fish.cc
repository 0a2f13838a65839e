// The completion of hvdrun for fish: one `complete` for each option of the table.
#include <fmt/ranges.h>

#include "launcher/options.h"
#include "launcher/options_table.h"

namespace hvd {
namespace {

std::string quote(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result.push_back('\\');
    result.push_back(c);
  }
  return result + "'";
}

// fish knows three kinds of names: -x, --long and the old -long.
std::string_view kind_of(std::string_view name) {
  if (name.starts_with("--")) return "-l";
  return is_short_name(name) ? "-s" : "-o";
}

std::string line_of(const OptionSpec& option) {
  std::string result = "complete -c hvdrun -n __hvdrun_has_no_command";
  for (const auto name : option.names) {
    result += fmt::format(" {} {}", kind_of(name), bare_name(name));
  }
  if (option.takes_argument()) result += option.is_file ? " -r -F" : " -x";
  if (!option.choices.empty()) {
    result += " -a " + quote(fmt::format("{}", fmt::join(option.choices, " ")));
  }
  return fmt::format("{} -d {}\n", result, quote(option.help));
}

// Every spelling whose next word is a value.
std::string names_with_argument() {
  std::string result;
  for (const OptionSpec& option : options_table()) {
    if (!option.takes_argument()) continue;
    for (const auto name : option.names) {
      result += fmt::format(" {}", name);
      if (is_short_name(name)) continue;
      result +=
          name.starts_with("--") ? fmt::format(" -{}", bare_name(name)) : fmt::format(" -{}", name);
    }
  }
  return result;
}

}  // namespace

std::string fish_completion() {
  std::string result = fmt::format(
      R"(# fish completion for hvdrun
function __hvdrun_command
    set -l with_value{}
    set -l words (commandline -opc)
    set -e words[1]
    while set -q words[1]
        if contains -- $words[1] $with_value
            set -e words[1]
        else if not string match -q -- '-*' $words[1]
            break
        else if test $words[1] = --
            set -e words[1]
            break
        end
        set -e words[1]
    end
    string join \n -- $words
end
function __hvdrun_has_no_command
    test -z (__hvdrun_command | string collect)
end
complete -c hvdrun -n __hvdrun_has_no_command -f -a '(__fish_complete_command)'
complete -c hvdrun -n 'not __hvdrun_has_no_command' -f -a '(complete -C (string join " " -- (__hvdrun_command) (commandline -ct)))'
)",
      names_with_argument());
  for (const OptionSpec& option : options_table()) {
    if (!option.is_hidden) result += line_of(option);
  }
  return result;
}

}  // namespace hvd
