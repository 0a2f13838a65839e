// The completion of hvdrun for zsh: a list for _arguments, from the option table.
#include <fmt/ranges.h>

#include "launcher/options.h"
#include "launcher/options_table.h"

namespace hvd {
namespace {

// Within single quotes; colons and brackets mean something to _arguments.
std::string escape(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      if (c == ':' || c == '[' || c == ']' || c == '\\') result.push_back('\\');
      result.push_back(c);
    }
  }
  return result;
}

// What follows the option's name: "N:", "KIND:(auto local)", "FILE:_files".
std::string argument_of(const OptionSpec& option) {
  if (!option.takes_argument()) return "";
  std::string values;
  if (!option.choices.empty()) {
    values = fmt::format("({})", fmt::join(option.choices, " "));
  } else if (option.is_file) {
    values = "_files";
  }
  return fmt::format(":{}:{}", escape(option.argument), values);
}

// One line for each spelling; those of an option that counts once exclude each other.
std::string lines_of(const OptionSpec& option) {
  const bool is_repeated = option.repeat == Repeat::kEach;
  const std::string before = is_repeated ? "*" : fmt::format("({})", fmt::join(option.names, " "));
  std::string result;
  for (const auto name : option.names) {
    // "=": the value may also stand behind an equals sign.
    const bool has_equals = option.takes_argument() && name.starts_with("--");
    result += fmt::format("  '{}{}{}[{}]{}' \\\n", before, name, has_equals ? "=" : "",
                          escape(option.help), argument_of(option));
  }
  return result;
}

}  // namespace

std::string zsh_completion() {
  std::string result = "#compdef hvdrun\n# zsh completion for hvdrun\n_arguments -S \\\n";
  for (const OptionSpec& option : options_table()) {
    if (!option.is_hidden) result += lines_of(option);
  }
  return result + "  '(-)1:command:_command_names -e' \\\n  '*::arguments:_normal'\n";
}

}  // namespace hvd
