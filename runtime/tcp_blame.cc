#include "runtime/tcp_blame.h"

#include <cstddef>

namespace hvd {

int find_culprit(int self, int awaited, std::span<const TcpAnswer> answers) {
  int current = awaited;
  // A chain without a repetition has at most as many links as there are ranks.
  for (std::size_t link = 0; link < answers.size(); ++link) {
    if (current < 0 || current == self) return awaited;
    const TcpAnswer& answer = answers[static_cast<std::size_t>(current)];
    if (!answer.has_answered) return current;
    current = answer.awaits;
  }
  return awaited;
}

}  // namespace hvd
