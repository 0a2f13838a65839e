// Certificates of a small private authority, by OpenSSL: ECDSA on P-256, X.509 version 3. Texts are
// PEM, times whole seconds since 1970. No state; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/peer_identity.h"

namespace hvd {

struct KeyAndCertificate {
  std::string key;
  std::string certificate;
};

struct Validity {
  std::int64_t from = 0;
  std::int64_t until = 0;
};

struct CertificateRequest {
  PeerIdentity identity;
  std::vector<std::string> addresses;  // of a node: further DNS names and IP addresses
  Validity validity;
};

struct CertificateFacts {
  std::string serial;  // hexadecimal digits
  PeerIdentity identity;
  std::vector<std::string> addresses;
  Validity validity;
};

struct Revocation {
  std::string serial;
  std::int64_t time = 0;
};

// `name` stands in the certificate for people.
[[nodiscard]] Result<KeyAndCertificate> make_authority(const std::string& name,
                                                       const Validity& validity);
// The authority's certificate and its times.
[[nodiscard]] Result<Validity> read_authority(const std::string& certificate);

// For both ends of TLS, signed by the authority, which must not have expired, with a fresh key; not
// valid longer than it.
[[nodiscard]] Result<KeyAndCertificate> issue_certificate(const KeyAndCertificate& authority,
                                                          const CertificateRequest& request);
[[nodiscard]] Result<CertificateFacts> read_certificate(const std::string& certificate);

// The authority's list of certificates that are void before their time.
[[nodiscard]] Result<std::string> make_revocation_list(const KeyAndCertificate& authority,
                                                       const std::vector<Revocation>& revoked,
                                                       const Validity& validity);
[[nodiscard]] Result<std::vector<Revocation>> read_revocation_list(const std::string& list);

}  // namespace hvd
