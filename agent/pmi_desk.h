// Carries PMI-1 between the shim, which holds the ranks' descriptors, the server that answers them,
// and the launcher, where the nodes meet at a barrier. A job of one node asks nobody.
//
// Lifecycle: from the spawn to the job's end. Thread: the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "agent/pmi_server.h"
#include "agent/store_relay.h"
#include "hvdrun/v1/agent.pb.h"
#include "hvdrun/v1/shim.pb.h"

namespace hvd {

class PmiDesk final : private StoreCall {
 public:
  using Send = std::function<void(const v1::ToShim&)>;

  // The relay is not owned and outlives this.
  PmiDesk(const v1::Spawn& spawn, const std::string& job_id, StoreRelay& store, Send send);

  void take(const v1::ShimPmi& piece);

  // A rank that was killed because it called MPI_Abort exits with the code that it gave. One that
  // has left MPI in another way that fails the job says so, and never ended with 0: the others
  // would wait for it for ever. What it does once it is stopped does not count.
  void note_end(v1::ExitReport& report) const;

 private:
  void act(PmiStep step);
  void meet(const v1::PmiPuts& puts);
  void answer(const v1::StoreReply& reply) override;

  StoreRelay& store_;
  const Send send_;
  const bool is_alone_;
  PmiServer server_;
  std::uint64_t num_fences_ = 0;
};

}  // namespace hvd
