// Where an agent that serves takes connections by TLS: who comes shows a certificate of the
// cluster's authority, and is one of the users that may start jobs, before a byte of his is looked
// at. What comes out is the plain end of a socket pair, like a connection to the unix socket.
//
// Strangers are bounded: so many at once, so many from one address, so long for the handshake. Each
// refusal is one line of the log.
//
// Lifecycle: start() once; close() ends listening and strangers, not connections that were handed
// over. Thread: the loop's.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/service_config.h"
#include "base/loop.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "proto/tls_pump.h"

namespace hvd {

class TlsEdge {
 public:
  // Most strangers at once, in all and from one address.
  static constexpr std::size_t kMostStrangers = 64;
  static constexpr std::size_t kMostOfOneAddress = 16;

  // `who`: "alice (10.0.0.9)".
  using Take = std::function<void(UniqueFd stream, const std::string& who)>;

  TlsEdge(Loop& loop, Take take) : loop_(loop), take_(std::move(take)), acceptor_(loop) {}

  // Errors name the file, or the place that cannot be listened at. Once.
  [[nodiscard]] Result<void> start(const ServiceConfig& config);

  // Certificates and clients anew; connections that stand go on. After an error the old ones hold.
  [[nodiscard]] Result<void> reload(const ServiceConfig& config);

  void close();

 private:
  using Socket = boost::asio::ip::tcp::socket;
  struct Strangers;  // who has not shown himself yet

  [[nodiscard]] Task<void> accept();
  [[nodiscard]] Task<void> meet(Socket socket, std::string address);
  [[nodiscard]] Result<std::string> user_of(SSL* session) const;

  Loop& loop_;
  const Take take_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::shared_ptr<boost::asio::ssl::context> context_;
  std::set<std::string> clients_;
  std::map<std::string, std::size_t> strangers_;  // address -> how many
  std::size_t num_strangers_ = 0;
  bool is_closed_ = false;
};

}  // namespace hvd
