// What the launcher has of one node's timelines after the job. Owned by the node; loop thread only.
#pragma once

#include <memory>
#include <string>

#include "launcher/timeline/timeline_spool.h"

namespace hvd {

struct NodeTimeline {
  std::shared_ptr<TimelineSpool> spool;  // shared with the merge's thread; null: none could be made
  bool is_over = false;                  // all has come, or no more will
  std::string problem;                   // why files stay on the node; empty: they may go
};

}  // namespace hvd
