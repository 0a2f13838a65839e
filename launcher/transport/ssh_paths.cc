#include "launcher/transport/ssh_paths.h"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace hvd {
namespace {

std::string look_up_home() {
  std::array<char, 4096> buffer;
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &found);
  if (found && found->pw_dir) return found->pw_dir;
  const char* home = std::getenv("HOME");
  return home ? home : "";
}

}  // namespace

const std::string& ssh_home() {
  static const std::string home = look_up_home();
  return home;
}

std::string expand_home(std::string_view path) {
  if (path != "~" && !path.starts_with("~/")) return std::string(path);
  return ssh_home() + std::string(path.substr(1));
}

std::string expand_ssh_tokens(std::string_view text, const SshTokens& tokens) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%' || i + 1 == text.size()) {
      result += text[i];
      continue;
    }
    switch (text[++i]) {
      case 'h':
        result += tokens.host;
        break;
      case 'n':
        result += tokens.given_host;
        break;
      case 'p':
        result += tokens.port;
        break;
      case 'r':
        result += tokens.remote_user;
        break;
      case 'd':
        result += ssh_home();
        break;
      case '%':
        result += '%';
        break;
      default:
        result += {'%', text[i]};
    }
  }
  return result;
}

std::string expand_ssh_path(std::string_view path, const SshTokens& tokens) {
  return expand_ssh_tokens(expand_home(path), tokens);
}

}  // namespace hvd
