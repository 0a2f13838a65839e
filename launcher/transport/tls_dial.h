// Dials an agent by TLS: name, TCP, handshake, and that the node is who it was called. What is then
// said over the stream is its caller's. Thread: the loop's.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/loop.h"
#include "base/status.h"
#include "launcher/transport/open_list.h"
#include "launcher/transport/transport.h"
#include "proto/tls_pump.h"

namespace hvd {

struct TlsDial {
  Loop& loop;
  OpenList& opens;  // outlives the call; abort_all() ends it soon
  std::shared_ptr<boost::asio::ssl::context> context;
  std::string host;  // as the user wrote it, without brackets
  std::uint16_t port = 0;
  SteadyTime deadline;
  // What was sent and is not answered for so long ends the connection, also later.
  std::chrono::nanoseconds lease;
  std::function<void(Phase)> on_phase{};  // may be empty
};

// The stream after the handshake, made with `context`, which it must not outlive. Errors begin with
// the host; at the deadline their code is kTimeout; "HOST: stopped" after abort_all(). A refusal of
// our certificate is none of them: with TLS 1.3 our side of the handshake is over before it comes.
[[nodiscard]] Task<Result<TlsPump::Stream>> dial_tls(TlsDial dial);

}  // namespace hvd
