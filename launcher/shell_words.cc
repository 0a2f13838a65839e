#include "launcher/shell_words.h"

#include <algorithm>

#include "base/blanks.h"

namespace hvd {
namespace {

constexpr std::string_view kPlainMarks = "_@%+=:,./-";

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kPlainMarks.find(c) != std::string_view::npos;
}

// One pass over the text; each character is handled by the state it meets.
class WordSplitter {
 public:
  Result<std::vector<std::string>> split(std::string_view text) {
    for (const char c : text) take(c);
    if (is_escaped_) return make_error(ExitCode::kUsage, "a backslash stands at the end");
    if (quote_ != 0) {
      return make_error(ExitCode::kUsage, "a {} quote is not closed",
                        quote_ == '"' ? "double" : "single");
    }
    end_word();
    return std::move(words_);
  }

 private:
  void take(char c) {
    if (is_escaped_) return take_escaped(c);
    if (c == '\\' && quote_ != '\'') {
      is_escaped_ = true;
    } else if (quote_ != 0) {
      c == quote_ ? static_cast<void>(quote_ = 0) : word_.push_back(c);
    } else if (c == '\'' || c == '"') {
      quote_ = c;
      has_word_ = true;
    } else if (kBlanks.find(c) != std::string_view::npos) {
      end_word();
    } else {
      add(c);
    }
  }

  void take_escaped(char c) {
    is_escaped_ = false;
    if (quote_ == '"' && c != '"' && c != '\\') word_.push_back('\\');
    add(c);
  }

  void add(char c) {
    word_.push_back(c);
    has_word_ = true;
  }

  void end_word() {
    if (has_word_) words_.push_back(std::move(word_));
    word_.clear();
    has_word_ = false;
  }

  std::vector<std::string> words_;
  std::string word_;
  bool has_word_ = false;  // '' is a word, too
  bool is_escaped_ = false;
  char quote_ = 0;
};

// $'...': the only form of bash that shows control bytes instead of sending them to the terminal.
std::string quote_control(std::string_view word) {
  std::string result = "$'";
  for (const char c : word) {
    if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (is_control(c)) {
      // Three octal digits: unlike \xN they cannot swallow a digit that follows.
      result += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    } else {
      if (c == '\'' || c == '\\') result.push_back('\\');
      result.push_back(c);
    }
  }
  return result + "'";
}

}  // namespace

Result<std::vector<std::string>> split_words(std::string_view text) {
  return WordSplitter().split(text);
}

std::string quote_word(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return std::string(word);
  if (std::any_of(word.begin(), word.end(), is_control)) return quote_control(word);
  std::string result = "'";
  for (const char c : word) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result.push_back(c);
    }
  }
  return result + "'";
}

std::string quote_words(const std::vector<std::string>& words) {
  std::string result;
  for (const std::string& word : words) {
    if (!result.empty()) result.push_back(' ');
    result += quote_word(word);
  }
  return result;
}

std::string show(std::string_view token) {
  constexpr std::size_t kMostBytes = 200;
  std::string result = "\"";
  for (const char c : token.substr(0, kMostBytes)) {
    if (is_control(c)) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      result.push_back(c);
    }
  }
  return result + (token.size() > kMostBytes ? "...\"" : "\"");
}

}  // namespace hvd
