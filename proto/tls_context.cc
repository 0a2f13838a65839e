#include "proto/tls_context.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/read_file.h"
#include "proto/certificate_names.h"

namespace hvd {
namespace {

namespace ssl = boost::asio::ssl;

struct FreeX509 {
  void operator()(X509* certificate) const { X509_free(certificate); }
};

// Somebody else who can read a key is somebody else who can be its owner.
Result<void> check_private(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return make_error("{}: {}", path, strerror(errno));
  if ((info.st_mode & 077) == 0) return {};
  return make_error("{} can be read by others; chmod 600 it", path);
}

Result<void> taken(const boost::system::error_code& error, const std::string& path,
                   const char* what) {
  ERR_clear_error();
  if (!error) return {};
  if (read_small_file(path).empty()) return make_error("{} cannot be read, or is empty", path);
  if (ERR_GET_REASON(static_cast<unsigned long>(error.value())) == X509_R_KEY_VALUES_MISMATCH) {
    return make_error("{} is not the key of the certificate beside it", path);
  }
  return make_error("{} holds no {}: {}", path, what, error.message());
}

Result<void> take_list(SSL_CTX* context, const std::string& path) {
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  X509_LOOKUP* lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
  const bool is_taken =
      lookup != nullptr && X509_load_crl_file(lookup, path.c_str(), X509_FILETYPE_PEM) > 0;
  ERR_clear_error();
  if (!is_taken && access(path.c_str(), R_OK) != 0) {
    return make_error("{}: {}; hvdctl ca issue --node puts one there", path, strerror(errno));
  }
  if (!is_taken) return make_error("{} holds no revocation list", path);
  X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
  return {};
}

struct FreeStoreContext {
  void operator()(X509_STORE_CTX* context) const { X509_STORE_CTX_free(context); }
};

// By the authority and its list that others will be looked at with.
Result<void> check_chain(SSL_CTX* context, X509* own, const TlsFiles& files) {
  const std::unique_ptr<X509_STORE_CTX, FreeStoreContext> look(X509_STORE_CTX_new());
  const bool is_ready =
      look && X509_STORE_CTX_init(look.get(), SSL_CTX_get_cert_store(context), own, nullptr) == 1;
  const bool holds = is_ready && X509_verify_cert(look.get()) == 1;
  ERR_clear_error();
  if (holds) return {};
  const int why = is_ready ? X509_STORE_CTX_get_error(look.get()) : X509_V_ERR_OUT_OF_MEM;
  return make_error("{} does not hold by {}{}{}: {}", files.certificate, files.authority,
                    files.revoked.empty() ? "" : " and ", files.revoked,
                    X509_verify_cert_error_string(why));
}

void free_claim(void*, void* claim, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<std::string*>(claim);
}

// Where a session keeps what its peer's certificate says, if that does not hold: OpenSSL keeps no
// such certificate.
int claim_index() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, free_claim);
  return index;
}

int keep_claim(int holds, X509_STORE_CTX* look) {
  if (holds == 1) return 1;
  auto* session =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(look, SSL_get_ex_data_X509_STORE_CTX_idx()));
  const auto names = names_in(X509_STORE_CTX_get0_cert(look));
  if (!names || SSL_get_ex_data(session, claim_index()) != nullptr) return 0;
  auto claim =
      std::make_unique<std::string>(fmt::format(" (it says: {})", identity_text(names->identity)));
  if (SSL_set_ex_data(session, claim_index(), claim.get()) == 1) claim.release();
  return 0;
}

// An end that does not hold itself would be told of by every peer, and by none in words.
Result<void> check_own(SSL_CTX* context, const TlsFiles& files, TlsEnd end) {
  X509* own = SSL_CTX_get0_certificate(context);
  if (X509_cmp_current_time(X509_get0_notAfter(own)) < 0) {
    return make_error("{} has expired; hvdctl ca renew makes another", files.certificate);
  }
  const auto names = names_in(own);
  if (!names) return tl::unexpected(names.error().within(files.certificate));
  const auto wanted =
      end == TlsEnd::kServer ? PeerIdentity::Kind::kNode : PeerIdentity::Kind::kUser;
  if (names->identity.kind != wanted) {
    return make_error("{} is the certificate of the {}; here it must be that of a {}",
                      files.certificate, identity_text(names->identity),
                      end == TlsEnd::kServer ? "node" : "user");
  }
  return check_chain(context, own, files);
}

}  // namespace

Result<std::shared_ptr<ssl::context>> make_tls_context(const TlsFiles& files, TlsEnd end) {
  if (auto done = check_private(files.key); !done) return tl::unexpected(done.error());
  auto context = std::make_shared<ssl::context>(end == TlsEnd::kServer ? ssl::context::tls_server
                                                                       : ssl::context::tls_client);
  SSL_CTX* own = context->native_handle();
  SSL_CTX_set_min_proto_version(own, TLS1_3_VERSION);
  // Nothing is kept of a session: each connection shows its certificates.
  SSL_CTX_set_session_cache_mode(own, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(own, 0);
  boost::system::error_code error;
  context->load_verify_file(files.authority, error);
  if (auto done = taken(error, files.authority, "authority's certificate"); !done) {
    return tl::unexpected(done.error());
  }
  context->use_certificate_file(files.certificate, ssl::context::pem, error);
  if (auto done = taken(error, files.certificate, "certificate"); !done) {
    return tl::unexpected(done.error());
  }
  context->use_private_key_file(files.key, ssl::context::pem, error);
  if (auto done = taken(error, files.key, "key"); !done) {
    return tl::unexpected(done.error());
  }
  if (!files.revoked.empty()) {
    if (auto done = take_list(own, files.revoked); !done) return tl::unexpected(done.error());
  }
  if (auto done = check_own(own, files, end); !done) return tl::unexpected(done.error());
  SSL_CTX_set_verify(own, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, keep_claim);
  return context;
}

std::chrono::seconds time_left(ssl::context& context) {
  const X509* own = SSL_CTX_get0_certificate(context.native_handle());
  int days = 0;
  int seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(own)) != 1) return {};
  return std::chrono::hours(24) * days + std::chrono::seconds(seconds);
}

Result<TlsPeer> peer_of(SSL* session) {
  const std::unique_ptr<X509, FreeX509> certificate(SSL_get1_peer_certificate(session));
  if (!certificate || SSL_get_verify_result(session) != X509_V_OK) {
    return make_error("shows no certificate that holds");
  }
  auto names = names_in(certificate.get());
  if (!names) return tl::unexpected(names.error().within("its certificate"));
  return TlsPeer{std::move(names->identity), std::move(names->addresses)};
}

std::string handshake_failure(SSL* session, const boost::system::error_code& error) {
  const long verified = SSL_get_verify_result(session);
  if (verified != X509_V_OK) {
    const auto* claim = static_cast<const std::string*>(SSL_get_ex_data(session, claim_index()));
    return fmt::format("its certificate{} does not hold: {}",
                       claim == nullptr ? std::string_view() : *claim,
                       X509_verify_cert_error_string(verified));
  }
  return error.message();
}

}  // namespace hvd
