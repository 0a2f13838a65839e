// The command line of hvd-exporter. Pure.
#pragma once

#include <netinet/in.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hvd {

struct ExporterArguments {
  enum class Wish { kServe, kHelp, kVersion };
  Wish wish = Wish::kServe;
  std::string listen = "127.0.0.1:9451";                // as parse_listen() wants it
  std::string agent_socket = "/run/hvdrun/agent.sock";  // absolute
};

// "127.0.0.1:9451"; port 0: any that is free. No IPv6: the HTTP server of Debian's prometheus-cpp
// is built without. An error is of usage.
[[nodiscard]] Result<sockaddr_in> parse_listen(std::string_view text);

// `words` without the program's name.
[[nodiscard]] Result<ExporterArguments> parse_exporter_arguments(
    const std::vector<std::string_view>& words);

}  // namespace hvd
