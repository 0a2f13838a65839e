// An agent that stays: it takes connections at its socket and by TLS, each of which is a session
// with a job of its own, as many at once as come.
//
// Lifecycle: start() once, stop() once; the loop is stopped after the last session. Thread: the
// loop's.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "agent/service_config.h"
#include "agent/service_socket.h"
#include "agent/session.h"
#include "agent/tls_edge.h"
#include "base/loop.h"

namespace hvd {

class Service {
 public:
  // `socket`: none where only TLS is wanted.
  Service(Loop& loop, std::optional<ServiceSocket> socket, Session::Place place);

  // Errors are those of TLS: its files, or the place where it is to listen.
  [[nodiscard]] Result<void> start(const ServiceConfig& config);

  // Certificates and clients anew, for connections to come. After an error the old ones hold.
  [[nodiscard]] Result<void> reload(const ServiceConfig& config);

  // No more connections; all jobs are ended by their ladders.
  void stop();

  [[nodiscard]] std::size_t num_sessions() const { return sessions_.size(); }

 private:
  [[nodiscard]] Task<void> accept();
  [[nodiscard]] bool take_connection();
  void begin_session(UniqueFd stream, const std::string& who);
  void end_session(std::uint64_t id);

  Loop& loop_;
  std::optional<ServiceSocket> socket_;
  boost::asio::posix::stream_descriptor listener_;  // a second descriptor of the socket
  TlsEdge tls_;
  const Session::Place place_;
  std::map<std::uint64_t, Session> sessions_;
  std::uint64_t last_id_ = 0;
  bool is_stopping_ = false;
};

}  // namespace hvd
