#include "launcher/status_line.h"

#include <fmt/format.h>

#include <algorithm>

namespace hvd {
namespace {

constexpr std::size_t kMaxNamed = 3;

}  // namespace

std::string pending_text(const std::vector<NodeProgress>& nodes) {
  std::string text;
  std::size_t num_pending = 0;
  for (const NodeProgress& node : nodes) {
    if (node.is_ready || ++num_pending > kMaxNamed) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{}: {}", node.host, node.phase);
  }
  if (num_pending > kMaxNamed) text += fmt::format(" and {} more", num_pending - kMaxNamed);
  return text;
}

std::string status_line(const std::vector<NodeProgress>& nodes) {
  const auto num_ready = std::count_if(nodes.begin(), nodes.end(),
                                       [](const NodeProgress& node) { return node.is_ready; });
  std::string text = fmt::format("{} of {} ready", num_ready, nodes.size());
  const std::string pending = pending_text(nodes);
  if (!pending.empty()) text += ", waiting for " + pending;
  return text;
}

}  // namespace hvd
