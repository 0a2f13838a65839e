// Where an end of TLS has its key and certificates.
#pragma once

#include <unistd.h>

#include <string>

namespace hvd {

struct TlsFiles {
  std::string key;  // for its owner alone
  std::string certificate;
  std::string authority;
  std::string revoked;  // the authority's list; empty: none is looked at
};

// As `hvdctl ca issue` names them: agent.* for a node, client.* for a user, who may do without the
// list of revoked ones: then a node whose certificate was revoked is one like others for him.
[[nodiscard]] inline TlsFiles node_files_in(const std::string& folder) {
  return {folder + "/agent.key", folder + "/agent.crt", folder + "/ca.crt", folder + "/crl.pem"};
}
[[nodiscard]] inline TlsFiles user_files_in(const std::string& folder) {
  const std::string list = folder + "/crl.pem";
  const bool is_there = access(list.c_str(), F_OK) == 0;
  return {folder + "/client.key", folder + "/client.crt", folder + "/ca.crt", is_there ? list : ""};
}

}  // namespace hvd
