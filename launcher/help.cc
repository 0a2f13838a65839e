// hvdrun --help: the option table in groups, wrapped to the width of the terminal.
#include <algorithm>

#include "launcher/manual.h"
#include "launcher/options.h"
#include "launcher/options_table.h"

namespace hvd {
namespace {

constexpr std::size_t kNarrowest = 50;
constexpr std::size_t kTermIndent = 2;
constexpr std::size_t kTextIndent = 28;

// Lines of at most `width` characters, cut at blanks.
std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(' ', at), text.size());
    const auto word = text.substr(at, end - at);
    std::string& line = lines.back();
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      lines.emplace_back(word);
    } else {
      line += (line.empty() ? "" : " ") + std::string(word);
    }
    at = end + 1;
  }
  return lines;
}

// The term, and beside it, or below if it is long, the text.
std::string format_row(std::string_view term, std::string_view text, std::size_t columns) {
  std::string result = std::string(kTermIndent, ' ') + std::string(term);
  bool is_beside = result.size() + 2 <= kTextIndent;
  for (const std::string& line : wrap(text, columns - kTextIndent)) {
    if (!is_beside) result += "\n";
    result += std::string(kTextIndent - (is_beside ? result.size() : 0), ' ') + line;
    is_beside = false;
  }
  return result + "\n";
}

std::string format_options(std::size_t columns) {
  std::string result;
  const OptionSpec* previous = nullptr;
  for (const OptionSpec& option : options_table()) {
    if (option.is_hidden) continue;
    if (previous == nullptr || previous->group != option.group) {
      result += fmt::format("\n{}:\n", group_title(option.group));
    }
    result += format_row(option_heading(option), option_description(option), columns);
    previous = &option;
  }
  return result;
}

std::string format_examples() {
  std::string result;
  for (const ManualRow& row : manual_examples()) {
    // Commands are kept in one piece for copying; those that are long are in the man page.
    if (row.term.size() + kTermIndent < 80) result += fmt::format("  {}\n", row.term);
  }
  return result;
}

}  // namespace

std::string help_text(int columns) {
  const auto width = std::max(kNarrowest, static_cast<std::size_t>(std::max(columns, 0)));
  std::string result = fmt::format("Usage: {}\n", kSynopsis);
  for (const std::string& line : wrap(fmt::format("hvdrun: {}. COMMAND runs once for each rank; "
                                                  "options behind it are its own.",
                                                  kSummary),
                                      width)) {
    result += line + "\n";
  }
  result += format_options(width);
  result += "\nTIME is seconds, or a number with s, m or h: 90, 1.5m, 2h.\n";
  result += "\nExit status:\n";
  for (const ManualRow& row : manual_exit_status()) result += format_row(row.term, row.text, width);
  return result + "\nExamples:\n" + format_examples();
}

}  // namespace hvd
