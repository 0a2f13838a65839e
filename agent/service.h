// An agent that stays: it takes connections at its socket, each of which is a session with a job of
// its own, as many at once as come.
//
// Lifecycle: start() once, stop() once; the loop is stopped after the last session. Thread: the
// loop's.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <map>

#include "agent/service_socket.h"
#include "agent/session.h"
#include "base/loop.h"

namespace hvd {

class Service {
 public:
  Service(Loop& loop, ServiceSocket socket, Session::Place place);

  void start();

  // No more connections; all jobs are ended by their ladders.
  void stop();

  [[nodiscard]] std::size_t num_sessions() const { return sessions_.size(); }

 private:
  [[nodiscard]] Task<void> accept();
  [[nodiscard]] bool take_connection();
  void begin_session(UniqueFd stream, PeerUser peer);
  void end_session(std::uint64_t id);

  Loop& loop_;
  ServiceSocket socket_;
  boost::asio::posix::stream_descriptor listener_;  // a second descriptor of the socket
  const Session::Place place_;
  std::map<std::uint64_t, Session> sessions_;
  std::uint64_t last_id_ = 0;
  bool is_stopping_ = false;
};

}  // namespace hvd
