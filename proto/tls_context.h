// TLS between hvdrun and the agents of a cluster: both ends show certificates of its own authority,
// in which one URI says who they are; nothing below TLS 1.3.
//
// Contexts are made from files, and every file that does not fit is named. Thread: any.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/peer_identity.h"
#include "proto/tls_files.h"

namespace hvd {

enum class TlsEnd { kClient, kServer };

[[nodiscard]] Result<std::shared_ptr<boost::asio::ssl::context>> make_tls_context(
    const TlsFiles& files, TlsEnd end);

// Until its own certificate ends; negative: it has.
[[nodiscard]] std::chrono::seconds time_left(boost::asio::ssl::context& context);

// Of the certificate that the peer has shown and OpenSSL has verified.
struct TlsPeer {
  PeerIdentity identity;
  std::vector<std::string> addresses;  // DNS names and IP addresses
};
[[nodiscard]] Result<TlsPeer> peer_of(SSL* session);

// Why a handshake failed, in words: of our own verification if that refused the peer, with the name
// that its certificate claims, else of what the peer or the network said.
[[nodiscard]] std::string handshake_failure(SSL* session, const boost::system::error_code& error);

}  // namespace hvd
