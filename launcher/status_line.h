// The one line that says how far the start has come. Pure.
#pragma once

#include <string>
#include <vector>

namespace hvd {

struct NodeProgress {
  std::string host;
  std::string phase;  // "authenticate"
  bool is_ready = false;
};

// "31 of 32 ready, waiting for node3: authenticate"; at most three nodes by name, "and 5 more".
[[nodiscard]] std::string status_line(const std::vector<NodeProgress>& nodes);

// "node3: authenticate, node4: connect and 5 more"; empty if all are ready.
[[nodiscard]] std::string pending_text(const std::vector<NodeProgress>& nodes);

}  // namespace hvd
