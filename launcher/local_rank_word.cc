#include "launcher/local_rank_word.h"

#include <algorithm>
#include <string_view>

namespace hvd {
namespace {

// "python", "/usr/bin/python3.11", "pypy3".
bool is_python(std::string_view word) {
  std::string_view name = word.substr(word.rfind('/') + 1);
  for (const std::string_view program : {"python", "pypy"}) {
    if (!name.starts_with(program)) continue;
    name.remove_prefix(program.size());
    return name.find_first_not_of("0123456789.") == std::string_view::npos;
  }
  return false;
}

// Of a cluster like "-um": whether it ends python's own options, and whether it takes the next
// word.
struct PythonOption {
  bool is_program = false;  // -m, -c
  bool takes_next = false;
};

PythonOption python_option(std::string_view word) {
  constexpr std::string_view kWithValue = "mcWX";
  if (word == "--check-hash-based-pycs") return {false, true};
  if (word.starts_with("--")) return {};
  const auto letter = word.find_first_of(kWithValue, 1);
  if (letter == std::string_view::npos) return {};
  return {word[letter] == 'm' || word[letter] == 'c', letter + 1 == word.size()};
}

// `at`: the word behind python.
std::size_t behind_script(const std::vector<std::string>& command, std::size_t at) {
  while (at < command.size()) {
    const std::string& word = command[at++];
    if (word.size() < 2 || word.front() != '-') return at;
    const PythonOption option = python_option(word);
    if (option.takes_next) ++at;
    if (option.is_program) break;
  }
  return std::min(at, command.size());
}

}  // namespace

std::size_t local_rank_place(const std::vector<std::string>& command) {
  const auto python = std::find_if(command.begin(), command.end(), is_python);
  if (python != command.end()) {
    return behind_script(command, static_cast<std::size_t>(python - command.begin()) + 1);
  }
  const auto script = std::find_if(command.begin(), command.end(),
                                   [](const std::string& word) { return word.ends_with(".py"); });
  if (script == command.end()) return command.size();
  return static_cast<std::size_t>(script - command.begin()) + 1;
}

}  // namespace hvd
