#include "launcher/transport/ssh_config_scan.h"

#include <fnmatch.h>
#include <glob.h>

#include <algorithm>
#include <cctype>
#include <fstream>

#include "launcher/transport/ssh_paths.h"

namespace hvd {
namespace {

constexpr int kMaxIncludeDepth = 8;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

constexpr std::string_view kBlanks = " \t";

// The next word of a line as ssh_config(5) has them: ended by one of `ends`, or in quotes.
std::string take_word(std::string_view& line, std::string_view ends) {
  const std::size_t start = std::min(line.find_first_not_of(ends), line.size());
  line.remove_prefix(start);
  const bool is_quoted = line.starts_with('"');
  if (is_quoted) line.remove_prefix(1);
  const std::size_t end = std::min(line.find_first_of(is_quoted ? "\"" : ends), line.size());
  std::string word(line.substr(0, end));
  line.remove_prefix(std::min(line.size(), end + (is_quoted ? 1 : 0)));
  return word;
}

// The keyword; what follows it may begin with an equals sign.
std::string take_keyword(std::string_view& line) {
  const std::string word = lower(take_word(line, " \t="));
  line.remove_prefix(std::min(line.find_first_not_of(" \t="), line.size()));
  return word;
}

class Scan {
 public:
  Scan(std::string_view host, SshConfigExtras* extras) : host_(host), extras_(*extras) {}

  void read(const std::string& path, int depth) {
    std::ifstream file(path);
    std::string line;
    bool is_ours = true;
    while (std::getline(file, line)) {
      while (line.ends_with('\r') || line.ends_with(' ')) line.pop_back();
      take_line(line, path, depth, &is_ours);
    }
  }

 private:
  void take_line(std::string_view line, const std::string& path, int depth, bool* is_ours) {
    const std::string name = take_keyword(line);
    if (name.empty() || name.front() == '#') return;
    if (name == "host") {
      *is_ours = matches_host_patterns(line, host_);
    } else if (name == "match") {
      *is_ours = is_match_ours(line);
    } else if (*is_ours && name == "identityfile") {
      extras_.identity_files.push_back(take_word(line, kBlanks));
    } else if (*is_ours && name == "identityagent" && extras_.identity_agent.empty()) {
      extras_.identity_agent = take_word(line, kBlanks);
    } else if (*is_ours && name == "include" && depth < kMaxIncludeDepth) {
      include(line, path, depth);
    }
  }

  [[nodiscard]] bool is_match_ours(std::string_view line) const {
    const std::string what = lower(take_word(line, kBlanks));
    if (what == "all") return true;
    const bool is_about_host = what == "host" || what == "originalhost";
    return is_about_host && matches_host_patterns(line, host_);
  }

  void include(std::string_view line, const std::string& path, int depth) {
    for (std::string word = take_word(line, kBlanks); !word.empty();
         word = take_word(line, kBlanks)) {
      word = expand_home(word);
      if (word.front() != '/') word = path.substr(0, path.rfind('/') + 1) + word;
      glob_t found{};
      if (::glob(word.c_str(), 0, nullptr, &found) == 0) {
        for (std::size_t i = 0; i < found.gl_pathc; ++i) read(found.gl_pathv[i], depth + 1);
      }
      ::globfree(&found);
    }
  }

  const std::string host_;
  SshConfigExtras& extras_;
};

}  // namespace

bool matches_host_patterns(std::string_view patterns, std::string_view host) {
  const std::string name = lower(host);
  bool is_met = false;
  for (std::string word = take_word(patterns, " \t,"); !word.empty();
       word = take_word(patterns, " \t,")) {
    const bool is_negated = word.front() == '!';
    const std::string pattern = lower(std::string_view(word).substr(is_negated ? 1 : 0));
    if (::fnmatch(pattern.c_str(), name.c_str(), 0) != 0) continue;
    if (is_negated) return false;
    is_met = true;
  }
  return is_met;
}

SshConfigExtras scan_ssh_config(const std::vector<std::string>& files, std::string_view host) {
  SshConfigExtras extras;
  Scan scan(host, &extras);
  for (const std::string& path : files) scan.read(path, 0);
  return extras;
}

}  // namespace hvd
