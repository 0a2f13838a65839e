// Command lines of subcommands: one table of rows each, read by getopt_long and printed by --help.
// Every error is a usage error (exit 2): one sentence with the option and the remedy. `command` is the
// program with its subcommand, as in "petrv2 train".
#pragma once

#include <getopt.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/parse_number.h"
#include "base/status.h"

namespace hvd {

template <typename Options>
struct OptionRow {
  const char* name;
  const char* argument;  // null: a flag
  const char* help;
  std::function<Result<void>(const std::string& value, Options& options)> apply;
  char letter = 0;  // "-H" beside "--hosts"; 0: none
};

template <typename Options>
using OptionTable = std::vector<OptionRow<Options>>;

// A whole number from lowest to highest, all of the text.
[[nodiscard]] inline Result<std::uint64_t> parse_whole(std::string_view option,
                                                       std::string_view text, std::uint64_t lowest,
                                                       std::uint64_t highest) {
  const auto number = parse_number<std::uint64_t>(text);
  if (number && *number >= lowest && *number <= highest) return *number;
  return make_error(ExitCode::kUsage, "--{} {} is out of place; give a whole number from {} to {}",
                    option, text, lowest, highest);
}

template <typename Options, typename Number>
OptionRow<Options> count_row(const char* name, const char* help, std::uint64_t lowest,
                             std::uint64_t highest, Number Options::*target) {
  return {name, "N", help, [=](const std::string& value, Options& options) {
            return parse_whole(name, value, lowest, highest).map([&](std::uint64_t number) {
              options.*target = static_cast<Number>(number);
            });
          }};
}

// A finite number above 0.
template <typename Options, typename Number>
OptionRow<Options> positive_row(const char* name, const char* help, Number Options::*target) {
  return {name, "X", help, [=](const std::string& value, Options& options) -> Result<void> {
            const auto number = parse_number<double>(value);
            if (!number || !std::isfinite(*number) || *number <= 0) {
              return make_error(ExitCode::kUsage, "--{} {} is no number above 0", name, value);
            }
            options.*target = *number;
            return {};
          }};
}

template <typename Options, typename Text>
OptionRow<Options> text_row(const char* name, const char* argument, const char* help,
                            Text Options::*target) {
  return {name, argument, help, [=](const std::string& value, Options& options) -> Result<void> {
            if (value.empty()) {
              return make_error(ExitCode::kUsage, "--{} is empty; give it as --{} {}", name, name,
                                argument);
            }
            options.*target = value;
            return {};
          }};
}

template <typename Options, typename Choice>
OptionRow<Options> choice_row(const char* name, const char* argument, const char* help,
                              std::vector<std::pair<std::string, Choice>> choices,
                              Choice Options::*target) {
  return {name, argument, help, [=](const std::string& value, Options& options) -> Result<void> {
            for (const auto& [word, choice] : choices) {
              if (word != value) continue;
              options.*target = choice;
              return {};
            }
            return make_error(ExitCode::kUsage, "--{} {} is not one of {}", name, value, argument);
          }};
}

template <typename Options>
OptionRow<Options> flag_row(const char* name, const char* help, bool Options::*target,
                            bool value = true) {
  return {name, nullptr, help, [=](const std::string&, Options& options) -> Result<void> {
            options.*target = value;
            return {};
          }};
}

// What getopt could not take: '?' an unknown option (or a value for a flag), ':' a missing value.
[[nodiscard]] inline Error option_refusal(int code, const std::string& word, const char* command) {
  const std::string what = code == ':' ? fmt::format("{} needs a value", word)
                                       : fmt::format("{} is no option of {}", word, command);
  return {fmt::format("{}; see {} --help", what, command), ExitCode::kUsage};
}

// `words` are the options alone. Called on one thread: getopt has one state.
template <typename Options>
[[nodiscard]] Result<Options> parse_options(const OptionTable<Options>& rows, const char* command,
                                            const std::vector<std::string>& words) {
  std::vector<std::string> copies = {command};
  copies.insert(copies.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  constexpr int kFirstRow = 256;  // below it: letters
  std::vector<option> table;
  std::string letters = "+:";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool is_flag = rows[i].argument == nullptr;
    table.push_back({rows[i].name, is_flag ? no_argument : required_argument, nullptr,
                     kFirstRow + static_cast<int>(i)});
    if (rows[i].letter == 0) continue;
    letters += rows[i].letter;
    if (!is_flag) letters += ':';
  }
  table.push_back({nullptr, 0, nullptr, 0});
  Options options;
  optind = 0;  // glibc: start anew
  opterr = 0;
  const int argc = static_cast<int>(copies.size());
  while (true) {
    const int at = optind == 0 ? 1 : optind;
    const int code = getopt_long(argc, argv.data(), letters.c_str(), table.data(), nullptr);
    if (code == -1) break;
    if (code == '?' || code == ':') {
      return tl::unexpected(option_refusal(code, copies[static_cast<std::size_t>(at)], command));
    }
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& one) {
      return code < kFirstRow ? one.letter == code : &one == &rows[code - kFirstRow];
    });
    auto done = row->apply(optarg == nullptr ? "" : optarg, options);
    if (!done) return tl::unexpected(done.error());
  }
  if (optind < argc) return tl::unexpected(option_refusal('?', argv[optind], command));
  return options;
}

[[nodiscard]] inline Result<void> require_option(const std::string& value, const char* name,
                                                 const char* command) {
  if (!value.empty()) return {};
  return make_error(ExitCode::kUsage, "{} needs --{}; see {} --help", command, name, command);
}

// `text`, then a line for each row.
template <typename Options>
[[nodiscard]] std::string option_help(const OptionTable<Options>& rows, std::string text) {
  for (const auto& row : rows) {
    std::string name = row.letter == 0 ? "--" : fmt::format("-{}, --", row.letter);
    name += row.argument == nullptr ? row.name : fmt::format("{} {}", row.name, row.argument);
    text += fmt::format("  {:<34} {}\n", name, row.help);
  }
  return text;
}

}  // namespace hvd
