#include "launcher/hvdctl/certificate.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/random_bytes.h"
#include "proto/certificate_names.h"

namespace hvd {
namespace {

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using List = std::unique_ptr<X509_CRL, Freer<X509_CRL_free>>;
using Number = std::unique_ptr<BIGNUM, Freer<BN_free>>;
using Time = std::unique_ptr<ASN1_TIME, Freer<ASN1_TIME_free>>;

constexpr std::size_t kSerialBytes = 16;
constexpr long kVersion3 = 2;
constexpr long kListVersion2 = 1;

// OpenSSL's own words for the last thing that went wrong.
tl::unexpected<Error> failed(const char* what) {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return make_error("cannot {}: {}", what, text.data());
}

std::string text_of(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

Bio reader(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Certificate parse_certificate(const std::string& text) {
  return Certificate(PEM_read_bio_X509(reader(text).get(), nullptr, nullptr, nullptr));
}

Result<KeyAndCertificate> to_text(EVP_PKEY* key, X509* certificate) {
  const Bio key_text(BIO_new(BIO_s_mem()));
  const Bio certificate_text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PKCS8PrivateKey(key_text.get(), key, nullptr, nullptr, 0, nullptr, nullptr) !=
          1 ||
      PEM_write_bio_X509(certificate_text.get(), certificate) != 1) {
    return failed("write a certificate");
  }
  return KeyAndCertificate{text_of(key_text), text_of(certificate_text)};
}

std::int64_t seconds_of(const ASN1_TIME* time) {
  const Time epoch(ASN1_TIME_set(nullptr, 0));
  int days = 0;
  int seconds = 0;
  constexpr std::int64_t kSecondsADay = 86'400;
  if (ASN1_TIME_diff(&days, &seconds, epoch.get(), time) != 1) return 0;
  return days * kSecondsADay + seconds;
}

Validity validity_of(const X509* certificate) {
  return {seconds_of(X509_get0_notBefore(certificate)),
          seconds_of(X509_get0_notAfter(certificate))};
}

std::string to_hex(const ASN1_INTEGER* serial) {
  const Number number(ASN1_INTEGER_to_BN(serial, nullptr));
  std::string bytes(static_cast<std::size_t>(BN_num_bytes(number.get())), '\0');
  BN_bn2bin(number.get(), reinterpret_cast<unsigned char*>(bytes.data()));
  return hex_of(bytes);
}

// Positive, as X.509 wants it.
bool set_random_serial(X509* certificate) {
  auto bytes = random_bytes(kSerialBytes);
  if (!bytes) return false;
  bytes->front() = static_cast<char>((bytes->front() & 0x3f) | 0x40);
  const Number number(BN_bin2bn(reinterpret_cast<const unsigned char*>(bytes->data()),
                                static_cast<int>(bytes->size()), nullptr));
  return BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  const bool is_added = extension != nullptr && X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return is_added;
}

bool set_basics(X509* certificate, EVP_PKEY* key, const std::string& name,
                const Validity& validity) {
  X509_NAME* subject = X509_get_subject_name(certificate);
  const auto* bytes = reinterpret_cast<const unsigned char*>(name.c_str());
  // 64 characters are the most for this field; the URI alone counts.
  constexpr std::size_t kLongest = 64;
  const int size = static_cast<int>(std::min(name.size(), kLongest));
  return X509_set_version(certificate, kVersion3) == 1 && set_random_serial(certificate) &&
         ASN1_TIME_set(X509_getm_notBefore(certificate), validity.from) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), validity.until) != nullptr &&
         X509_set_pubkey(certificate, key) == 1 &&
         X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, bytes, size, -1, 0) == 1;
}

std::string subject_names(const CertificateRequest& request) {
  std::string names = "URI:" + to_uri(request.identity);
  std::vector<std::string> addresses = request.addresses;
  if (request.identity.kind == PeerIdentity::Kind::kNode) {
    addresses.insert(addresses.begin(), request.identity.name);
  }
  for (const std::string& address : addresses) {
    names += fmt::format(",{}:{}", is_ip_address(address) ? "IP" : "DNS", address);
  }
  return names;
}

}  // namespace

Result<KeyAndCertificate> make_authority(const std::string& name, const Validity& validity) {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  X509* own = certificate.get();
  const bool is_made =
      key && own != nullptr && set_basics(own, key.get(), name, validity) &&
      X509_set_issuer_name(own, X509_get_subject_name(own)) == 1 &&
      add_extension(own, own, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
      add_extension(own, own, NID_key_usage, "critical,keyCertSign,cRLSign") &&
      add_extension(own, own, NID_subject_key_identifier, "hash") &&
      X509_sign(own, key.get(), EVP_sha256()) > 0;
  if (!is_made) return failed("make an authority");
  return to_text(key.get(), own);
}

Result<Validity> read_authority(const std::string& certificate) {
  const Certificate parsed = parse_certificate(certificate);
  if (!parsed) return failed("read the authority's certificate");
  if (X509_check_ca(parsed.get()) != 1) return make_error("is no certificate of an authority");
  return validity_of(parsed.get());
}

Result<KeyAndCertificate> issue_certificate(const KeyAndCertificate& authority,
                                            const CertificateRequest& request) {
  const Certificate issuer = parse_certificate(authority.certificate);
  const Key issuer_key(
      PEM_read_bio_PrivateKey(reader(authority.key).get(), nullptr, nullptr, nullptr));
  if (!issuer || !issuer_key) return failed("read the authority");
  if (X509_check_private_key(issuer.get(), issuer_key.get()) != 1) {
    return failed("use the authority: its key and certificate do not belong together");
  }
  Validity validity = request.validity;
  validity.until = std::min(validity.until, validity_of(issuer.get()).until);
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  X509* own = certificate.get();
  const bool is_made =
      key && own != nullptr && set_basics(own, key.get(), request.identity.name, validity) &&
      X509_set_issuer_name(own, X509_get_subject_name(issuer.get())) == 1 &&
      add_extension(own, issuer.get(), NID_basic_constraints, "critical,CA:FALSE") &&
      add_extension(own, issuer.get(), NID_key_usage, "critical,digitalSignature") &&
      add_extension(own, issuer.get(), NID_ext_key_usage, "serverAuth,clientAuth") &&
      add_extension(own, issuer.get(), NID_subject_alt_name, subject_names(request)) &&
      add_extension(own, issuer.get(), NID_subject_key_identifier, "hash") &&
      add_extension(own, issuer.get(), NID_authority_key_identifier, "keyid") &&
      X509_sign(own, issuer_key.get(), EVP_sha256()) > 0;
  if (!is_made) return failed("make a certificate");
  return to_text(key.get(), own);
}

Result<CertificateFacts> read_certificate(const std::string& certificate) {
  const Certificate parsed = parse_certificate(certificate);
  if (!parsed) return failed("read a certificate");
  CertificateFacts facts;
  facts.serial = to_hex(X509_get0_serialNumber(parsed.get()));
  facts.validity = validity_of(parsed.get());
  auto names = names_in(parsed.get());
  if (!names) return tl::unexpected(names.error());
  facts.identity = std::move(names->identity);
  facts.addresses = std::move(names->addresses);
  return facts;
}

Result<std::string> make_revocation_list(const KeyAndCertificate& authority,
                                         const std::vector<Revocation>& revoked,
                                         const Validity& validity) {
  const Certificate issuer = parse_certificate(authority.certificate);
  const Key key(PEM_read_bio_PrivateKey(reader(authority.key).get(), nullptr, nullptr, nullptr));
  const List list(X509_CRL_new());
  if (!issuer || !key || !list) return failed("read the authority");
  const Time from(ASN1_TIME_set(nullptr, validity.from));
  const Time until(ASN1_TIME_set(nullptr, validity.until));
  bool is_made = X509_CRL_set_version(list.get(), kListVersion2) == 1 &&
                 X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(issuer.get())) == 1 &&
                 X509_CRL_set1_lastUpdate(list.get(), from.get()) == 1 &&
                 X509_CRL_set1_nextUpdate(list.get(), until.get()) == 1;
  for (const Revocation& one : revoked) {
    BIGNUM* digits = nullptr;
    BN_hex2bn(&digits, one.serial.c_str());
    const Number number(digits);
    ASN1_INTEGER* serial = BN_to_ASN1_INTEGER(number.get(), nullptr);
    const Time time(ASN1_TIME_set(nullptr, one.time));
    X509_REVOKED* entry = X509_REVOKED_new();
    is_made = is_made && X509_REVOKED_set_serialNumber(entry, serial) == 1 &&
              X509_REVOKED_set_revocationDate(entry, time.get()) == 1 &&
              X509_CRL_add0_revoked(list.get(), entry) == 1;
    ASN1_INTEGER_free(serial);
  }
  is_made = is_made && X509_CRL_sort(list.get()) == 1 &&
            X509_CRL_sign(list.get(), key.get(), EVP_sha256()) > 0;
  const Bio text(BIO_new(BIO_s_mem()));
  if (!is_made || PEM_write_bio_X509_CRL(text.get(), list.get()) != 1) {
    return failed("make a revocation list");
  }
  return text_of(text);
}

Result<std::vector<Revocation>> read_revocation_list(const std::string& list) {
  const List parsed(PEM_read_bio_X509_CRL(reader(list).get(), nullptr, nullptr, nullptr));
  if (!parsed) return failed("read the revocation list");
  std::vector<Revocation> revoked;
  STACK_OF(X509_REVOKED)* entries = X509_CRL_get_REVOKED(parsed.get());
  for (int i = 0; i < sk_X509_REVOKED_num(entries); ++i) {
    const X509_REVOKED* entry = sk_X509_REVOKED_value(entries, i);
    revoked.push_back({to_hex(X509_REVOKED_get0_serialNumber(entry)),
                       seconds_of(X509_REVOKED_get0_revocationDate(entry))});
  }
  return revoked;
}

}  // namespace hvd
