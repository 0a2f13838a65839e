// The Watch calls of this node's workers: their heartbeats come in, notices go out to all of them.
// Part of the Rendezvous service (rendezvous_edge.h).
//
// Lifecycle: open() from the service's threads as long as its server lives, close() before the
// server is shut down. Thread: the loop's, but for open().
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "agent/stream_edge.h"
#include "base/loop.h"
#include "hvdrun/v1/rendezvous.pb.h"

namespace hvd {

class WatchEdge {
 public:
  struct Handlers {  // called on the loop
    // `peer` is gRPC's name of the connection.
    std::function<void(const std::string& peer, const hvdrun::v1::WorkerBeat&)> on_beat;
    std::function<void(std::uint32_t rank)> on_end;  // of a call that has sent a beat
  };
  WatchEdge(Loop& loop, Handlers handlers);

  // On gRPC's thread: the reactor of a new call.
  grpc::ServerBidiReactor<hvdrun::v1::WorkerBeat, hvdrun::v1::WorkerNotice>* open(
      const std::string& peer);

  // To every open call; `done` is called once, when it is on its way to all of them or at the
  // limit.
  void notify(const hvdrun::v1::WorkerNotice& notice, std::chrono::milliseconds limit,
              std::function<void()> done);

  // Ends all calls, and every later one at once.
  void close();

 private:
  using Call = StreamCall<hvdrun::v1::WorkerBeat, hvdrun::v1::WorkerNotice>;
  struct Pending;  // a notice that is being written

  void take_open(Call* call);
  void take_beat(Call* call, const hvdrun::v1::WorkerBeat& beat);
  void take_written(Call* call);
  void take_end(Call* call);

  Loop& loop_;
  const Handlers handlers_;
  Call::Handlers call_handlers_;
  std::unordered_map<Call*, std::optional<std::uint32_t>> calls_;  // with the rank, once known
  bool is_closed_ = false;
  std::vector<std::shared_ptr<Pending>> pending_;
};

}  // namespace hvd
