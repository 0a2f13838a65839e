// The HTTP side of HorovodStore: plain HTTP over IPv4, one request a connection, answered as
// horovodrun's server does (HTTP/1.0, "Content-Length" in exactly these letters, then the end).
//
// Nobody proves here who he is, because the clients, compiled into Horovod, cannot. So a connection
// is heard only if it came to the address that the ranks were given, and nobody can cost the agent
// more than the limits: bytes of a request, time, connections at once. Further connections wait in
// the kernel's queue, because these clients wait for ever but do not come back after a refusal.
//
// Lifecycle: listen() chooses the port, at which connections queue up; serve() begins to answer;
// close() ends all, also in the middle of a request. Thread: the loop's.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "agent/horovod_store.h"
#include "base/loop.h"
#include "base/status.h"

namespace hvd {

class HorovodServer {
 public:
  struct Limits {
    std::chrono::milliseconds request_time = std::chrono::seconds(3);  // so long again to answer
    std::size_t max_connections = 128;                                 // at once
    std::size_t max_body = 1024 * 1024;                                // bytes
  };

  explicit HorovodServer(Loop& loop) : HorovodServer(loop, Limits()) {}
  HorovodServer(Loop& loop, Limits limits);
  ~HorovodServer();
  HorovodServer(const HorovodServer&) = delete;
  HorovodServer& operator=(const HorovodServer&) = delete;

  // Numeric IPv4, "0.0.0.0" for every address of the node; returns the port.
  [[nodiscard]] Result<std::uint16_t> listen(const std::string& address);

  // `only_at`: connections to other addresses of the node are closed unheard; empty: to none.
  // Without listen() before it this does nothing.
  void serve(HorovodStore store, const std::string& only_at);

  void close();

 private:
  struct State;
  struct Connection;
  static Task<void> accept(std::shared_ptr<State> state);
  static Task<void> talk(std::shared_ptr<State> state, std::shared_ptr<Connection> connection);
  static Task<void> drop_rest(std::shared_ptr<Connection> connection);

  std::shared_ptr<State> state_;  // shared with the coroutines that answer
};

}  // namespace hvd
