// Where an end of TLS has its key and certificates.
#pragma once

#include <string>

namespace hvd {

struct TlsFiles {
  std::string key;  // for its owner alone
  std::string certificate;
  std::string authority;
  std::string revoked;  // the authority's list; empty: none is looked at
};

// As `hvdctl ca issue` names them: agent.* for a node, which has the list of revoked ones as well,
// client.* for a user.
[[nodiscard]] inline TlsFiles node_files_in(const std::string& folder) {
  return {folder + "/agent.key", folder + "/agent.crt", folder + "/ca.crt", folder + "/crl.pem"};
}
[[nodiscard]] inline TlsFiles user_files_in(const std::string& folder) {
  return {folder + "/client.key", folder + "/client.crt", folder + "/ca.crt", ""};
}

}  // namespace hvd
