// Carries the bytes of one TLS connection between the network and a socket pair, whose other end
// gRPC has: neither side needs to know of the other.
//
// Lifecycle: from start() until either side ends or close(); it keeps itself alive meanwhile. What
// the pair's other end has said before its end must be taken by the network's side within 10 s.
// Thread: the loop's. At most two buffers of 64 KiB are held.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/unique_fd.h"
#include "proto/tls_context.h"

namespace hvd {

class TlsPump : public std::enable_shared_from_this<TlsPump> {
 public:
  using Stream = boost::asio::ssl::stream<boost::asio::ip::tcp::socket>;

  // After the handshake. `context` lives as long as the connection; `socket`: our end of the pair.
  static std::shared_ptr<TlsPump> start(std::shared_ptr<boost::asio::ssl::context> context,
                                        Stream stream, UniqueFd socket);
  TlsPump(std::shared_ptr<boost::asio::ssl::context> context, Stream stream, UniqueFd socket);

  // Both sides end; what is under way may be lost.
  void close();
  // What ended it from the network's side, if that was an error: "tlsv13 alert certificate
  // required".
  [[nodiscard]] const std::string& why() const { return why_; }
  // Whether that came from TLS: at the beginning of a connection, a refusal of our certificate.
  [[nodiscard]] bool has_alert() const { return has_alert_; }

 private:
  Task<void> carry_in();
  Task<void> carry_out();
  Task<void> watch_socket();

  const std::shared_ptr<boost::asio::ssl::context> context_;
  Stream stream_;
  boost::asio::local::stream_protocol::socket socket_;
  std::vector<char> in_;
  std::vector<char> out_;
  boost::asio::steady_timer drain_limit_;
  std::string why_;
  bool has_alert_ = false;
};

}  // namespace hvd
