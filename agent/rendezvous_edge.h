// The Rendezvous service for this node's workers, on the job's unix socket and on nothing else. The
// agent accepts by itself, so that it sees who comes: another user's process is turned away.
//
// Lifecycle: start() once, shutdown() once. Thread: the loop's; gRPC's threads stay inside.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/store_relay.h"
#include "base/loop.h"
#include "base/status.h"

namespace hvd {

class RendezvousEdge {
 public:
  // `relay` is not owned and outlives this.
  RendezvousEdge(Loop& loop, StoreRelay& relay);
  ~RendezvousEdge();

  // Listens at the path, which must not exist yet. gRPC starts with the first worker that connects.
  [[nodiscard]] Result<void> start(const std::string& path);

  void shutdown(std::function<void()> done);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hvd
