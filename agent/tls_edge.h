// Where an agent that serves takes connections by TLS: who comes shows a certificate of the
// cluster's authority, and is one of the users that may start jobs, before a byte of his is looked
// at. He says one line, the desk answers it, and the connection carries from then on what the desk
// says.
//
// Strangers are bounded: so many at once, so many from one address, so long for the handshake. Each
// refusal is one line of the log.
//
// Lifecycle: start() once; close() ends listening and strangers, not connections that were handed
// over. Thread: the loop's.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/front_desk.h"
#include "agent/refusal_log.h"
#include "agent/service_config.h"
#include "base/loop.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "proto/tls_pump.h"

namespace hvd {

class TlsEdge {
 public:
  // Most strangers at once, in all (a newcomer then takes the place of the oldest) and from one
  // address, or one IPv6 network of 64 bits.
  static constexpr std::size_t kMostStrangers = 256;
  static constexpr std::size_t kMostOfOneAddress = 16;
  // Most who are being answered at once; it takes long only for those who wait for GPUs.
  static constexpr std::size_t kMostServed = 1024;

  // Neither is owned; both outlive this.
  TlsEdge(Loop& loop, FrontDesk& desk, RefusalLog& refusals)
      : loop_(loop), desk_(desk), refusals_(refusals), acceptor_(loop) {}

  // Errors name the file, or the place that cannot be listened at. Once. `listening`: a socket that
  // the service manager listens at for us; not valid: we do.
  [[nodiscard]] Result<void> start(const ServiceConfig& config, UniqueFd listening);

  // Certificates and clients anew; connections that stand go on. After an error the old ones hold.
  [[nodiscard]] Result<void> reload(const ServiceConfig& config);

  void close();

 private:
  using Socket = boost::asio::ip::tcp::socket;
  // One who has not shown himself yet, for as long as it lives.
  class Stranger;

  [[nodiscard]] Result<void> listen(const TcpPlace& place);
  [[nodiscard]] Task<void> accept();
  [[nodiscard]] Task<void> meet(Socket socket, std::unique_ptr<Stranger> stranger);
  // The oldest that has not been dropped yet.
  void drop_oldest();
  void refuse(const std::string& address, const std::string& why);
  [[nodiscard]] Result<std::string> user_of(SSL* session) const;

  Loop& loop_;
  FrontDesk& desk_;
  RefusalLog& refusals_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::shared_ptr<boost::asio::ssl::context> context_;
  std::set<std::string> clients_;
  std::map<std::string, std::size_t> strangers_;  // address -> how many
  std::list<Stranger*> oldest_first_;
  std::size_t num_served_ = 0;
  bool is_closed_ = false;
};

}  // namespace hvd
