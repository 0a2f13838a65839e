// A small private authority as a folder: ca.key (for its owner alone), ca.crt, crl.pem, and a copy
// of each certificate that it has issued in issued/SERIAL.crt. There is no further record: what is
// listed is read from these.
//
// Changes are made under a lock, and each file appears complete or not at all. Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "launcher/hvdctl/certificate.h"

namespace hvd {

struct IssuedCertificate {
  CertificateFacts facts;
  std::optional<std::int64_t> revoked;  // when, seconds since 1970
};

class Authority {
 public:
  // A new one; the folder must not hold one already.
  [[nodiscard]] static Result<Authority> create(const std::string& folder, const std::string& name,
                                                const Validity& validity);
  [[nodiscard]] static Result<Authority> open(const std::string& folder);

  [[nodiscard]] Result<KeyAndCertificate> issue(const CertificateRequest& request);
  // All of them, oldest first.
  [[nodiscard]] Result<std::vector<IssuedCertificate>> list() const;
  // By their serials, which the authority must have issued.
  [[nodiscard]] Result<void> revoke(const std::vector<std::string>& serials, std::int64_t now);

  [[nodiscard]] const std::string& certificate() const { return own_.certificate; }
  [[nodiscard]] Result<std::string> revocation_list() const;
  [[nodiscard]] const Validity& validity() const { return validity_; }

 private:
  Authority(std::string folder, UniqueFd lock, KeyAndCertificate own, const Validity& validity)
      : folder_(std::move(folder)),
        lock_(std::move(lock)),
        own_(std::move(own)),
        validity_(validity) {}
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
  UniqueFd lock_;
  KeyAndCertificate own_;
  Validity validity_;
};

// Replaces the file as a whole; 0600 if it is secret, else 0644.
[[nodiscard]] Result<void> write_whole(const std::string& path, const std::string& text,
                                       bool is_secret);

}  // namespace hvd
