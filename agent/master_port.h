// Node 0's part of the fabric check: MASTER_PORT reserved for the job's life, and answered on until
// the workers start. Thread: the loop's.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "agent/fabric.h"
#include "base/loop.h"
#include "hvdrun/v1/agent.pb.h"

namespace hvd {

class MasterPort {
 public:
  explicit MasterPort(Loop& loop) : loop_(loop) {}

  // Reserves a port and listens if asked to. Asked again, the first port stays and is told again.
  [[nodiscard]] hvdrun::v1::FabricListenReply open(const hvdrun::v1::FabricListen& request,
                                                   const std::string& job_id);

  // No more listening, so that rank 0 can; the port stays reserved.
  void end_check() { listener_.reset(); }

 private:
  [[nodiscard]] Result<void> reserve_and_listen(const hvdrun::v1::FabricListen& request,
                                                const std::string& job_id);

  Loop& loop_;
  std::optional<FabricReservation> reservation_;
  std::unique_ptr<FabricListener> listener_;
};

}  // namespace hvd
