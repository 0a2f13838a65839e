#include "launcher/env_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/blanks.h"

namespace hvd {
namespace {

// '#' begins a comment behind a blank.
std::string_view without_comment(std::string_view text) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '#' && kBlanks.find(text[i - 1]) != std::string_view::npos) {
      return text.substr(0, i);
    }
  }
  return text;
}

class EnvFileReader {
 public:
  EnvFileReader(std::string_view text, std::string_view path, const EnvList& own,
                std::vector<std::string>& notes)
      : text_(text), path_(path), own_(own), notes_(notes) {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);
    if (text_.find('\n') == std::string_view::npos) line_end_ = '\r';  // of an old Macintosh
  }

  Result<EnvList> read() {
    while (at_ < text_.size()) {
      begin_ = at_;
      const std::string_view line = take_rest_of_line();
      const std::string_view words = strip_blanks(line);
      if (words.empty() || words.front() == '#') continue;
      if (auto taken = read_variable(line); !taken) return tl::unexpected(taken.error());
    }
    return std::move(variables_);
  }

 private:
  // "run.env:3", of the line where the variable that is being read begins.
  [[nodiscard]] std::string place() const {
    const auto before = text_.substr(0, begin_);
    return fmt::format("{}:{}", path_, 1 + std::count(before.begin(), before.end(), line_end_));
  }

  [[nodiscard]] tl::unexpected<Error> error(std::string_view what) const {
    return make_error(ExitCode::kUsage, "{}: {}", place(), what);
  }

  // Reading goes on behind it.
  std::string_view take_rest_of_line() {
    const auto end = std::min(text_.find(line_end_, at_), text_.size());
    const auto rest = text_.substr(at_, end - at_);
    at_ = end + 1;
    return rest;
  }

  Result<void> read_variable(std::string_view line) {
    const auto equals = line.find('=');
    std::string_view name = strip_blanks(line.substr(0, equals));
    constexpr std::string_view kExport = "export";
    if (name.starts_with(kExport) && name.find_first_of(kBlanks) == kExport.size()) {
      name = strip_blanks(name.substr(kExport.size()));
    }
    if (equals == std::string_view::npos) return add_own(strip_blanks(without_comment(name)));
    if (!is_variable_name(name)) {
      return error(
          "what stands before the first '=' is no name of a variable; write NAME=VALUE with "
          "letters, digits and '_' in NAME");
    }
    const std::string_view rest = line.substr(equals + 1);
    const auto first = rest.find_first_not_of(kBlanks);
    if (first != std::string_view::npos && (rest[first] == '"' || rest[first] == '\'')) {
      at_ = begin_ + equals + 1 + first;
      return read_quoted(name);
    }
    return add(name, std::string(strip_blanks(without_comment(rest))), true);
  }

  // NAME without '='. What it is is not shown: it may be a line of somebody's key.
  Result<void> add_own(std::string_view name) {
    if (!is_variable_name(name)) {
      return error("the line is neither NAME=VALUE nor the name of a variable");
    }
    auto value = find_env(own_, name);
    if (value) {
      variables_.emplace_back(name, std::move(*value));
    } else {
      notes_.push_back(fmt::format(
          "{}: the line has no '=', and hvdrun has no such variable: it is left out", place()));
    }
    return {};
  }

  Result<void> read_quoted(std::string_view name) {
    const char quote = text_[at_++];
    std::string value;
    while (at_ < text_.size() && text_[at_] != quote) {
      value += quote == '"' ? take_escaped() : text_[at_++];
    }
    if (at_ >= text_.size()) return error(fmt::format("the quote {} is not closed", quote));
    ++at_;
    const std::string_view rest = strip_blanks(take_rest_of_line());
    if (!rest.empty() && rest.front() != '#') {
      return error(fmt::format(
          "something stands behind the closing quote {}; quote the whole value", quote));
    }
    return add(name, std::move(value), quote == '"');
  }

  char take_escaped() {
    constexpr std::string_view kLetters = "nrt\"\\$";
    constexpr std::string_view kMeanings = "\n\r\t\"\\$";
    const bool is_escape = text_[at_] == '\\' && at_ + 1 < text_.size();
    const auto which = is_escape ? kLetters.find(text_[at_ + 1]) : std::string_view::npos;
    if (which == std::string_view::npos) return text_[at_++];
    at_ += 2;
    return kMeanings[which];
  }

  Result<void> add(std::string_view name, std::string value, bool may_look_expanded) {
    if (value.find('\0') != std::string::npos) return error("a value cannot hold a zero byte");
    if (may_look_expanded && mentions_itself(name, value)) {
      notes_.push_back(fmt::format("{}: {}", place(), literal_note(name)));
    }
    variables_.emplace_back(name, std::move(value));
    return {};
  }

  std::string_view text_;
  char line_end_ = '\n';
  const std::string_view path_;
  const EnvList& own_;
  std::vector<std::string>& notes_;
  std::size_t begin_ = 0;  // of the line or variable that is being read
  std::size_t at_ = 0;
  EnvList variables_;
};

}  // namespace

Result<EnvList> parse_env_file(std::string_view text, std::string_view path, const EnvList& own,
                               std::vector<std::string>& notes) {
  return EnvFileReader(text, path, own, notes).read();
}

bool is_variable_name(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

std::string literal_note(std::string_view name) {
  return fmt::format("${} in the value of {} is taken literally, as nothing is expanded", name,
                     name);
}

bool mentions_itself(std::string_view name, std::string_view value) {
  const auto is_name_char = [](char c) { return is_variable_name(std::string{'_', c}); };
  for (auto at = value.find('$'); at != std::string_view::npos; at = value.find('$', at + 1)) {
    std::string_view rest = value.substr(at + 1);
    if (rest.starts_with('{')) rest.remove_prefix(1);
    if (!rest.starts_with(name)) continue;
    if (rest.size() == name.size() || !is_name_char(rest[name.size()])) return true;
  }
  return false;
}

}  // namespace hvd
