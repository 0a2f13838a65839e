#include "launcher/argv_scan.h"

#include <getopt.h>

#include <algorithm>

#include "launcher/foreign_options.h"
#include "launcher/nearest_name.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

// What getopt returns for a long option: above every character, row of the table and opposite in
// one.
constexpr int kFirstLongCode = 256;

int long_code(std::size_t row, bool is_opposite) {
  return kFirstLongCode + static_cast<int>(2 * row) + (is_opposite ? 1 : 0);
}

bool is_spelled_out(const std::vector<std::string>& argv, std::string_view name) {
  return std::any_of(argv.begin(), argv.end(), [name](std::string_view word) {
    if (word.substr(0, 1) != "-" || word.size() < 2) return false;
    const auto bare = bare_name(word);
    return bare.substr(0, bare.find('=')) == bare_name(name);
  });
}

// The table in getopt's own form. The strings are the table's literals, hence null-terminated.
struct GetoptTables {
  std::string letters = "+:";  // stop at the command; tell a missing argument by ':'
  std::vector<option> longs;
  std::vector<std::pair<char, std::size_t>> rows_by_letter;
};

void add_name(GetoptTables& tables, std::string_view name, std::size_t row, bool is_opposite,
              bool takes_argument) {
  if (is_short_name(name)) {
    tables.letters += name[1];
    if (takes_argument) tables.letters += ':';
    tables.rows_by_letter.emplace_back(name[1], row);
    return;
  }
  tables.longs.push_back({bare_name(name).data(), takes_argument ? required_argument : no_argument,
                          nullptr, long_code(row, is_opposite)});
}

// "--name" and "--name=ARGUMENT".
void add_optional(GetoptTables& tables, std::string_view name, std::size_t row) {
  tables.longs.push_back(
      {bare_name(name).data(), optional_argument, nullptr, long_code(row, false)});
}

GetoptTables make_tables(const std::vector<std::string>& argv) {
  GetoptTables tables;
  const auto& table = options_table();
  for (std::size_t row = 0; row < table.size(); ++row) {
    const OptionSpec& spec = table[row];
    for (const auto name : spec.names) {
      if (spec.is_hidden && !is_spelled_out(argv, name)) continue;
      if (spec.is_argument_optional) {
        add_optional(tables, name, row);
        continue;
      }
      add_name(tables, name, row, false, spec.takes_argument());
    }
    if (!spec.opposite.empty()) add_name(tables, spec.opposite, row, true, false);
  }
  tables.longs.push_back({nullptr, 0, nullptr, 0});
  return tables;
}

Occurrence make_occurrence(const GetoptTables& tables, int code) {
  std::size_t row = 0;
  bool is_opposite = false;
  if (code >= kFirstLongCode) {
    row = static_cast<std::size_t>(code - kFirstLongCode) / 2;
    is_opposite = (code - kFirstLongCode) % 2 == 1;
  } else {
    const auto found = std::find_if(tables.rows_by_letter.begin(), tables.rows_by_letter.end(),
                                    [code](const auto& entry) { return entry.first == code; });
    row = found->second;
  }
  return {&options_table()[row], is_opposite, optarg != nullptr ? optarg : "", {}};
}

template <typename Visit>
void for_each_documented_long_name(Visit visit) {
  for (const OptionSpec& spec : options_table()) {
    if (spec.is_hidden) continue;
    for (const auto name : spec.names) {
      if (!is_short_name(name)) visit(name);
    }
  }
}

// getopt_long_only finds a beginning of two spellings of one option ambiguous: the first of them,
// or empty if they are of several options.
std::string_view one_option_for(std::string_view stem) {
  std::string_view found;
  const OptionSpec* of = nullptr;
  for (const OptionSpec& spec : options_table()) {
    for (const auto name : spec.names) {
      if (is_short_name(name) || spec.is_hidden || !bare_name(name).starts_with(stem)) continue;
      if (of != nullptr && of != &spec) return "";
      if (of == nullptr) found = name;
      of = &spec;
    }
    if (!spec.opposite.empty() && bare_name(spec.opposite).starts_with(stem)) return "";
  }
  return found;
}

std::vector<std::string_view> names_with_prefix(std::string_view stem) {
  std::vector<std::string_view> names;
  for_each_documented_long_name([&](std::string_view name) {
    if (bare_name(name).substr(0, stem.size()) == stem) names.push_back(name);
  });
  return names;
}

// With its dashes; empty if none is near.
std::string_view nearest_option(std::string_view stem) {
  std::vector<std::string_view> names;
  std::vector<std::string_view> stems;
  for_each_documented_long_name([&](std::string_view name) {
    names.push_back(name);
    stems.push_back(bare_name(name));
  });
  const auto nearest = nearest_name(stem, stems);
  const auto found = std::find(stems.begin(), stems.end(), nearest);
  return found == stems.end() ? "" : names[static_cast<std::size_t>(found - stems.begin())];
}

Error unknown_option(std::string_view word) {
  const std::string_view name = word.substr(0, word.find('='));
  const std::string_view stem = bare_name(name);
  const auto candidates = names_with_prefix(stem);
  std::string text;
  if (const auto hint = foreign_option_hint(name); !hint.empty()) {
    text = fmt::format("option {} {}", show(name), hint);
  } else if (candidates.size() > 1) {
    text = fmt::format("option {} is ambiguous; write one of {}", show(name),
                       fmt::join(candidates, ", "));
  } else if (const auto nearest = nearest_option(stem); !nearest.empty()) {
    text = fmt::format("option {} is unknown; did you mean {}? (see hvdrun --help)", show(name),
                       nearest);
  } else {
    text = fmt::format("option {} is unknown; see hvdrun --help", show(name));
  }
  return {text, ExitCode::kUsage};
}

// getopt's '?': an unknown word, a letter in a cluster, or "--flag=value".
Error explain_question_mark(std::string_view word) {
  if (optopt >= kFirstLongCode) {
    return {fmt::format("option {} takes no value; write it alone",
                        show(word.substr(0, word.find('=')))),
            ExitCode::kUsage};
  }
  if (optopt != 0 && word.size() > 2) {
    return {fmt::format("option {} has the unknown letter {}; see hvdrun --help", show(word),
                        show(std::string(1, static_cast<char>(optopt)))),
            ExitCode::kUsage};
  }
  return unknown_option(word);
}

Error missing_argument(const GetoptTables& tables, std::string_view word) {
  const Occurrence occurrence = make_occurrence(tables, optopt);
  return {fmt::format("option {} needs a value; write it as {} {}", show(word),
                      occurrence.spec->names.front(), occurrence.spec->argument),
          ExitCode::kUsage};
}

// The words with beginnings of several spellings of one option written out.
std::vector<std::string> with_whole_names(std::vector<std::string> argv, std::size_t at) {
  std::string& word = argv[at];
  const std::string name = word.substr(0, word.find('='));
  const auto whole = one_option_for(bare_name(name));
  if (!whole.empty() && whole != name) word = std::string(whole) + word.substr(name.size());
  return argv;
}

}  // namespace

ArgvScan scan_argv(const std::vector<std::string>& argv) {
  ArgvScan scan;
  const GetoptTables tables = make_tables(argv);
  // getopt takes char* for the sake of permutation, which '+' switches off: nothing is written.
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const int count = static_cast<int>(argv.size());
  if (count == 0) return scan;

  opterr = 0;
  optind = 0;  // glibc: start anew, also after a scan that ended inside a cluster
  int at = 1;  // the word that is being scanned
  while (true) {
    optarg = nullptr;
    optopt = 0;
    const int code =
        getopt_long_only(count, words.data(), tables.letters.c_str(), tables.longs.data(), nullptr);
    if (code == -1) break;
    const std::string_view word = argv[static_cast<std::size_t>(at)];
    if (code == '?' && names_with_prefix(bare_name(word.substr(0, word.find('=')))).size() > 1) {
      const auto whole = with_whole_names(argv, static_cast<std::size_t>(at));
      if (whole != argv) return scan_argv(whole);
    }
    if (code == '?' || code == ':') {
      Error error = code == '?' ? explain_question_mark(word) : missing_argument(tables, word);
      if (!scan.error) scan.error = std::move(error);
    } else {
      scan.options.push_back(make_occurrence(tables, code));
    }
    at = optind;
  }
  const auto first = static_cast<std::size_t>(optind);
  scan.is_separated = optind > at && argv[first - 1] == "--";
  scan.command.assign(argv.begin() + optind, argv.end());
  return scan;
}

}  // namespace hvd
