// The Rendezvous service for this node's workers, on the job's unix socket and on nothing else. The
// agent accepts by itself, so that it sees who comes: another user's process is turned away.
//
// Lifecycle: start() once, shutdown() once. Thread: the loop's; gRPC's threads stay inside.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "agent/store_relay.h"
#include "base/loop.h"
#include "base/status.h"
#include "hvdrun/v1/types.pb.h"

namespace hvd {

class RendezvousEdge {
 public:
  struct Handlers {
    // A worker's heartbeat; pid: of the process that sent it, 0: not known.
    std::function<void(const hvdrun::v1::WorkerBeat&, pid_t pid)> on_beat;
    // The worker of this rank will send no more.
    std::function<void(std::uint32_t rank)> on_watch_end;
  };
  // `relay` is not owned and outlives this.
  RendezvousEdge(Loop& loop, StoreRelay& relay, Handlers handlers);
  ~RendezvousEdge();

  // Listens at the path, which must not exist yet. gRPC starts with the first worker that connects.
  [[nodiscard]] Result<void> start(const std::string& path);

  // To all workers that have a Watch call open; `done` when it is on its way to each of them, at
  // most 50 ms later.
  void notify(const hvdrun::v1::WorkerNotice& notice, std::function<void()> done);

  void shutdown(std::function<void()> done);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hvd
