// The configuration file of `hvd-agent serve --config FILE`, YAML:
//
//   listen: [unix:/run/hvdrun/agent.sock, "tls:[::]:50451"]
//   tls: /etc/hvdrun/tls          # folder with agent.key, agent.crt, ca.crt, crl.pem
//   clients: [alice, bob]         # users in the certificates of those who may start jobs by TLS
//
// Every key that is not known, stands twice or has a value of another kind is an error with its
// line. Pure, but for read_service_config().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hvd {

struct TcpPlace {
  std::string address;  // numeric
  std::uint16_t port = 0;
};

struct ServiceConfig {
  std::string socket;           // absolute path; empty: none
  std::optional<TcpPlace> tls;  // where TLS listens
  std::string tls_folder;
  std::vector<std::string> clients;
};

// "unix:/path" or "tls:ADDRESS:PORT", with brackets round an IPv6 address. Twice the same kind is
// an error.
[[nodiscard]] Result<void> add_listen(ServiceConfig& config, std::string_view text);

// Errors begin with FILE:LINE and are of usage.
[[nodiscard]] Result<ServiceConfig> parse_service_config(const std::string& text,
                                                         const std::string& file);
[[nodiscard]] Result<ServiceConfig> read_service_config(const std::string& file);

}  // namespace hvd
