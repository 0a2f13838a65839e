// This node's side of the fabric check: tries every address of node 0 at once and tells which
// answer, and from which own address it was seen. An address gets a new connection each second
// until one is answered, somebody says no, or the time is over; once an address has answered, the
// others are not waited for much longer (fabric_patience.h). Thread: the loop's.
#pragma once

#include <string>

#include "base/loop.h"
#include "hvdrun/v1/agent.pb.h"

namespace hvd {

// Results in the order of the candidates. Takes at most probe.timeout_ms.
[[nodiscard]] Task<hvdrun::v1::FabricProbeReply> probe_fabric(hvdrun::v1::FabricProbe probe,
                                                              std::string job_id);

}  // namespace hvd
