#include "launcher/argv_scan.h"

#include <getopt.h>

#include <algorithm>
#include <numeric>

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

GetoptTables make_tables(const std::vector<std::string>& argv) {
  GetoptTables tables;
  const auto& table = options_table();
  for (std::size_t row = 0; row < table.size(); ++row) {
    const OptionSpec& spec = table[row];
    for (const auto name : spec.names) {
      if (spec.is_hidden && !is_spelled_out(argv, name)) continue;
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
  return {&options_table()[row], is_opposite, optarg != nullptr ? optarg : ""};
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> previous(b.size() + 1);
  std::iota(previous.begin(), previous.end(), 0U);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> current = {i};
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current.push_back(std::min({change, previous[j] + 1, current[j - 1] + 1}));
    }
    previous = std::move(current);
  }
  return previous.back();
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

std::vector<std::string_view> names_with_prefix(std::string_view stem) {
  std::vector<std::string_view> names;
  for_each_documented_long_name([&](std::string_view name) {
    if (bare_name(name).substr(0, stem.size()) == stem) names.push_back(name);
  });
  return names;
}

// The documented name that is at most a third of its letters away; empty if none is.
std::string_view nearest_name(std::string_view stem) {
  std::string_view nearest;
  std::size_t least = std::max<std::size_t>(1, stem.size() / 3) + 1;
  for_each_documented_long_name([&](std::string_view name) {
    const std::size_t distance = edit_distance(stem, bare_name(name));
    if (distance >= least || distance >= bare_name(name).size()) return;
    least = distance;
    nearest = name;
  });
  return nearest;
}

Error unknown_option(std::string_view word) {
  const std::string_view name = word.substr(0, word.find('='));
  const std::string_view stem = bare_name(name);
  const auto candidates = names_with_prefix(stem);
  std::string text;
  if (candidates.size() > 1) {
    text = fmt::format("option {} is ambiguous; write one of {}", show(name),
                       fmt::join(candidates, ", "));
  } else if (const auto nearest = nearest_name(stem); !nearest.empty()) {
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
