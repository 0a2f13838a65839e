#include "launcher/transport/rsh_words.h"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "base/replace_all.h"

namespace hvd {
namespace {

std::string own_user() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry ? entry->pw_name : std::to_string(::geteuid());
}

std::string expand_word(std::string word, const Target& target) {
  if (word.find("{user}") != std::string::npos) {
    replace_all(word, "{user}", target.user.empty() ? own_user() : target.user);
  }
  replace_all(word, "{port}", std::to_string(target.port == 0 ? 22 : target.port));
  replace_all(word, "{host}", target.host);
  return word;
}

}  // namespace

Result<std::vector<std::string>> expand_rsh(const std::vector<std::string>& rsh,
                                            const Target& target,
                                            const std::vector<std::string>& command) {
  if (rsh.empty()) return make_error(ExitCode::kUsage, "--rsh has no program");
  if (target.host.starts_with('-') || target.user.starts_with('-')) {
    return make_error(ExitCode::kUsage, "host name {} begins with a dash", target.host);
  }
  std::vector<std::string> words;
  bool has_command = false;
  for (const std::string& word : rsh) {
    if (word == "{command}") {
      words.insert(words.end(), command.begin(), command.end());
      has_command = true;
    } else {
      words.push_back(expand_word(word, target));
    }
  }
  if (!has_command) words.insert(words.end(), command.begin(), command.end());
  return words;
}

}  // namespace hvd
