// The completion of hvdrun for bash: option names, the few values of options that have choices,
// file names where an option wants one, and behind COMMAND what the command itself completes.
#include "launcher/options.h"
#include "launcher/options_table.h"

namespace hvd {
namespace {

std::string documented_names() {
  std::string result;
  for (const OptionSpec& option : options_table()) {
    if (option.is_hidden) continue;
    for (const auto name : option.names)
      result += fmt::format("{}{}", result.empty() ? "" : " ", name);
  }
  return result;
}

// "-np|--num-proc|--np": every spelling that takes the next word as its value.
template <typename Wanted>
std::string pattern_of(Wanted is_wanted) {
  std::string result;
  const auto add = [&result](std::string_view name) {
    result += fmt::format("{}{}", result.empty() ? "" : "|", name);
  };
  for (const OptionSpec& option : options_table()) {
    if (!is_wanted(option)) continue;
    for (const auto name : option.names) {
      add(name);
      if (is_short_name(name)) continue;
      add(name.substr(0, 2) == "--" ? fmt::format("-{}", bare_name(name))
                                    : fmt::format("-{}", name));
    }
  }
  return result;
}

std::string choice_cases() {
  std::string result;
  for (const OptionSpec& option : options_table()) {
    if (option.choices.empty() || option.is_hidden) continue;
    const auto pattern = pattern_of([&](const OptionSpec& it) { return it.id == option.id; });
    result += fmt::format("    {}) COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")); return ;;\n",
                          pattern, fmt::join(option.choices, " "));
  }
  return result;
}

}  // namespace

std::string bash_completion() {
  const auto with_argument =
      pattern_of([](const OptionSpec& option) { return option.takes_argument(); });
  const auto with_file = pattern_of([](const OptionSpec& option) { return option.is_file; });
  return fmt::format(
      R"(# bash completion for hvdrun
_hvdrun() {{
  # Words as they were typed: bash has cut them at '=' and ':' as well.
  local words cword cur prev i typed=${{COMP_LINE:0:COMP_POINT}}
  read -ra words <<<"$typed"
  [[ $typed == *[[:space:]] ]] && words+=("")
  cword=$((${{#words[@]}} - 1)) cur=${{words[cword]}} prev=${{words[cword-1]}}
  COMPREPLY=()
  for ((i = 1; i < cword; i++)); do
    case ${{words[i]}} in
      {0}) ((i++)) ;;
      --) ((i++)); break ;;
      -*) ;;
      *) break ;;
    esac
  done
  if ((i < cword)); then
    if declare -F _command_offset >/dev/null; then
      local piece=0 word rest
      for word in "${{words[@]:0:i}}"; do
        rest=$word
        while [[ -n $rest ]] && ((piece < COMP_CWORD)); do rest=${{rest#"${{COMP_WORDS[piece]}}"}}; ((piece++)); done
      done
      _command_offset "$piece"
    else
      COMPREPLY=($(compgen -f -- "$cur"))
    fi
    return
  fi
  if ((i == cword)) && [[ $cur == --*=* ]]; then
    prev=${{cur%%=*}} cur=${{cur#*=}} i=$((cword + 1))
  fi
  if ((i > cword)); then
    case $prev in
{1}    {2}) COMPREPLY=($(compgen -f -- "$cur")); return ;;
      *) return ;;
    esac
  fi
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "{3}" -- "$cur"))
  else
    COMPREPLY=($(compgen -c -- "$cur"))
  fi
}}
complete -o bashdefault -o default -F _hvdrun hvdrun
)",
      with_argument, choice_cases(), with_file, documented_names());
}

}  // namespace hvd
