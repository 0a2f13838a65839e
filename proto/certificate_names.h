// The names in a certificate: one URI of ours, DNS names and IP addresses.
#pragma once

#include <openssl/x509.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "proto/peer_identity.h"

namespace hvd {

struct CertificateNames {
  PeerIdentity identity;
  std::vector<std::string> addresses;
};

// Exactly one URI, and that one of a user or a node.
[[nodiscard]] Result<CertificateNames> names_in(const X509* certificate);

}  // namespace hvd
