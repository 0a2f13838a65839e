// Asks agents that serve, by one control line each: those of nodes over TLS, this machine's over
// its unix socket; all at once, of very many nodes some hundred at once.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/loop.h"
#include "launcher/hvdctl/control_answer.h"

namespace hvd {

struct NodeAddress {
  std::string host;  // empty: this machine's agent, over its socket
  std::uint16_t port = 0;
};

// How agents are reached.
struct ControlReach {
  std::string socket;                                  // at most kLongestSocketPath bytes
  std::shared_ptr<boost::asio::ssl::context> context;  // null where no node has a host
  std::string certificate;                             // the context's file, for a message
  std::chrono::nanoseconds timeout;                    // for one node, from the name to the answer
};
inline constexpr std::size_t kLongestSocketPath = 107;

// The longest answer that is read.
inline constexpr std::size_t kMostAnswerBytes = std::size_t{4} << 20;

// Runs the loop until all nodes have answered or failed. `words`: what stands behind "ctl", one
// line. The answers, in the order of `nodes`: the JSON of each.
[[nodiscard]] std::vector<Answer<std::string>> ask_all(Loop& loop, const ControlReach& reach,
                                                       const std::vector<NodeAddress>& nodes,
                                                       const std::string& words);

}  // namespace hvd
