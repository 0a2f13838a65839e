#include "proto/certificate_names.h"

#include <arpa/inet.h>
#include <openssl/x509v3.h>

#include <array>
#include <memory>

namespace hvd {
namespace {

struct FreeNames {
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};

std::string ip_text(const ASN1_OCTET_STRING* address) {
  const int size = ASN1_STRING_length(address);
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = size == sizeof(in_addr) ? AF_INET : AF_INET6;
  if (size != sizeof(in_addr) && size != sizeof(in6_addr)) return {};
  inet_ntop(family, ASN1_STRING_get0_data(address), text.data(), text.size());
  return text.data();
}

std::string string_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

}  // namespace

Result<CertificateNames> names_in(const X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, FreeNames> list(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  CertificateNames names;
  int num_identities = 0;
  for (int i = 0; list && i < sk_GENERAL_NAME_num(list.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(list.get(), i);
    if (name->type == GEN_URI) {
      const auto identity = parse_identity(string_of(name->d.uniformResourceIdentifier));
      ++num_identities;
      if (!identity) return make_error("is for somebody who is neither a user nor a node");
      names.identity = *identity;
    } else if (name->type == GEN_DNS) {
      names.addresses.push_back(string_of(name->d.dNSName));
    } else if (name->type == GEN_IPADD) {
      names.addresses.push_back(ip_text(name->d.iPAddress));
    }
  }
  if (num_identities != 1) return make_error("does not name one user or node");
  return names;
}

}  // namespace hvd
