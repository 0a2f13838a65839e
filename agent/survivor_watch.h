// A process that outlived SIGKILL, stuck in the kernel: hvdrun does not wait for it, but an agent
// that stays tells its log when it has gone.
//
// Thread: the loop's; with the loop ends the watch.
#pragma once

#include <string>

#include "base/loop.h"
#include "hvdrun/v1/types.pb.h"

namespace hvd {

// `job` names its job in the log.
void watch_survivor(Loop& loop, std::string job, const hvdrun::v1::Survivor& survivor);

}  // namespace hvd
