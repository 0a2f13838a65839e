// The configuration file of `hvd-agent serve --config FILE`, YAML:
//
//   listen: [unix:/run/hvdrun/agent.sock, "tls:[::]:50451"]
//   tls: /etc/hvdrun/tls          # folder with agent.key, agent.crt, ca.crt, crl.pem
//   clients: [alice, bob]         # users in the certificates of those who may start jobs by TLS;
//   clients:                      # or with what each may do
//     alice: {}
//     ci: {run_as: [build, train], max_jobs: 4}
//   admins: [carol]               # may stop all jobs, drain the node (hvdctl)
//   max_jobs: 8                   # at once
//   busy_gpus: refuse             # or wait: what happens to a job whose GPUs another one has
//   log_level: info               # or warning, debug
//
// Every key that is not known, stands twice or has a value of another kind is an error with its
// line. Pure, but for read_service_config().
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/status.h"

namespace hvd {

struct TcpPlace {
  std::string address;  // numeric
  std::uint16_t port = 0;

  bool operator==(const TcpPlace&) const = default;
};

struct ClientRule {
  std::vector<std::string> run_as;     // local users, the first by default; empty: of the same name
  std::optional<unsigned> max_jobs{};  // of this client at once
};

struct ServiceConfig {
  std::string socket;           // absolute path; empty: none
  std::optional<TcpPlace> tls;  // where TLS listens
  std::string tls_folder;
  std::map<std::string, ClientRule> clients;
  std::set<std::string> admins;
  unsigned max_jobs = 64;
  bool waits_for_gpus = false;
  LogLevel log_level = LogLevel::kInfo;
};

// "unix:/path" or "tls:ADDRESS:PORT", with brackets round an IPv6 address. Twice the same kind is
// an error.
[[nodiscard]] Result<void> add_listen(ServiceConfig& config, std::string_view text);

// Errors begin with FILE:LINE and are of usage.
[[nodiscard]] Result<ServiceConfig> parse_service_config(const std::string& text,
                                                         const std::string& file);
[[nodiscard]] Result<ServiceConfig> read_service_config(const std::string& file);

}  // namespace hvd
