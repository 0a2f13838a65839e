// An agent that stays. By TLS it starts jobs that live on their own and connects their launchers
// with them (front_desk.h); a connection to its unix socket is a session with a job of its own, as
// many at once as come, or a question to the desk.
//
// Lifecycle: start() once, stop() once; the loop is stopped after the last session. Thread: the
// loop's.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "agent/front_desk.h"
#include "agent/peer_user.h"
#include "agent/refusal_log.h"
#include "agent/service_config.h"
#include "agent/service_socket.h"
#include "agent/session.h"
#include "agent/tls_edge.h"
#include "base/loop.h"

namespace hvd {

class Service {
 public:
  struct Config {
    ServiceConfig file;
    std::string folder;             // for what must outlive this process; empty: no desk and no TLS
    UniqueFd listening;             // for TLS, from the service manager; may be none
    std::optional<uid_t> observer;  // may ask the desk about the node by the unix socket
  };

  // `socket`: none where only TLS is wanted.
  Service(Loop& loop, std::optional<ServiceSocket> socket, Session::Place place, Config config);

  // Errors are those of the folder, and of TLS: its files, or the place where it is to listen.
  [[nodiscard]] Result<void> start();

  // Certificates and clients anew, for connections to come. After an error the old ones hold.
  [[nodiscard]] Result<void> reload(const ServiceConfig& config);

  // Jobs that live on their own get the word to stop; how many are still there at `limit`.
  [[nodiscard]] Task<std::size_t> stop_jobs(const std::string& reason, SteadyTime limit);

  // No more connections; the jobs of sessions are ended by their ladders.
  void stop();

  // Whether its jobs live in units of their own, and so outlive it.
  [[nodiscard]] bool has_units() const { return desk_ && desk_->has_units(); }
  [[nodiscard]] std::size_t num_sessions() const { return sessions_.size(); }
  [[nodiscard]] std::size_t num_jobs() { return desk_ ? desk_->num_jobs() : 0; }

 private:
  [[nodiscard]] Task<void> accept();
  [[nodiscard]] bool take_connection();
  [[nodiscard]] Task<void> meet(UniqueFd stream, PeerUser peer);
  [[nodiscard]] Task<void> answer(UniqueFd stream, PeerUser peer, std::string line);
  void refuse(const UniqueFd& stream, const PeerUser& peer, const std::string& why,
              const std::string& words);
  void begin_session(UniqueFd stream, const std::string& who, Result<std::string> line);
  void end_session(std::uint64_t id);

  Loop& loop_;
  std::optional<ServiceSocket> socket_;
  boost::asio::posix::stream_descriptor listener_;  // a second descriptor of the socket
  Config config_;
  RefusalLog refusals_;
  std::optional<FrontDesk> desk_;
  std::optional<TlsEdge> tls_;
  const Session::Place place_;
  std::map<std::uint64_t, Session> sessions_;
  std::uint64_t last_id_ = 0;
  bool is_stopping_ = false;
};

}  // namespace hvd
