// File names as ssh_config writes them. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace hvd {

// The home folder of the password file, as ssh takes it, and not that of the environment.
[[nodiscard]] const std::string& ssh_home();

// "~/x" with the home folder in place.
[[nodiscard]] std::string expand_home(std::string_view path);

// What %-tokens stand for.
struct SshTokens {
  std::string_view host;         // %h, after HostName
  std::string_view given_host;   // %n
  std::string_view port;         // %p
  std::string_view remote_user;  // %r
};

// "~" and the tokens %h %n %p %r %d %% replaced; others stay.
[[nodiscard]] std::string expand_ssh_path(std::string_view path, const SshTokens& tokens);
[[nodiscard]] std::string expand_ssh_tokens(std::string_view text, const SshTokens& tokens);

}  // namespace hvd
